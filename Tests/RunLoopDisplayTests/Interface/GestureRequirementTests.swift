// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Gestures that wait for others to fail, and actions that cause others", .timeLimit(.minutes(20)))
@MainActor
struct GestureRequirementTests {
  private func perform(_ body: (Stage, View) throws -> Void) throws {
    try Stage.perform { stage in
      let view = View(frame: Rect(x: 0, y: 0, width: 40, height: 10))
      stage.window.addSubview(view)
      stage.logged = { _ in false }
      try body(stage, view)
    }
  }

  private func logger(_ stage: Stage, _ name: String) -> @MainActor (GestureRecognizer) -> Void {
    { stage.log.write("\(name):\($0.state)") }
  }

  @Test("a double tap rules out the tap that waits for it, whatever else follows the touch", arguments: 0..<3)
  func third(place: Int) throws {
    try perform { stage, view in
      let double = TapGestureRecognizer(tapsRequired: 2, logger(stage, "double"))
      let single = TapGestureRecognizer(logger(stage, "single"))
      single.require(toFail: double)
      var recognizers: [GestureRecognizer] = [single, double]
      recognizers.insert(LongPressGestureRecognizer(logger(stage, "press")), at: place)
      for recognizer in recognizers { view.addGestureRecognizer(recognizer) }
      stage.send(.press(0, 0), .release(0, 0), .press(0, 0), .release(0, 0), at: 10)
      stage.send(.press(0, 0), .release(0, 0), at: 1000)
      try stage.run(until: 2000)
      #expect(stage.log.text == "double:recognized single:recognized")
    }
  }

  @Test("a recognised gesture rules out all that wait for it, even those that could otherwise be recognised with it")
  func several() throws {
    try perform { stage, view in
      let double = TapGestureRecognizer(tapsRequired: 2, logger(stage, "double"))
      view.addGestureRecognizer(double)
      for name in ["first", "second", "third"] {
        let single = TapGestureRecognizer(logger(stage, name))
        single.require(toFail: double)
        single.recognizeSimultaneously(with: double)
        for other in view.gestureRecognizers { single.recognizeSimultaneously(with: other) }
        view.addGestureRecognizer(single)
      }
      stage.send(.press(0, 0), .release(0, 0), .press(0, 0), .release(0, 0), at: 10)
      stage.send(.press(0, 0), .release(0, 0), at: 1000)
      try stage.run(until: 2000)
      #expect(stage.log.text == "double:recognized first:recognized second:recognized third:recognized")
    }
  }

  @Test("an action that causes its own call is reported after a fixed number of calls per turn, and the loop continues")
  func endlessAction() throws {
    try perform { stage, view in
      let time = stage.time
      var count = 0
      let pan = PanGestureRecognizer { pan in
        count += 1
        time.spend(.milliseconds(1))
        // Nothing else would end an endless loop.
        if count < 10_000 { pan.state = .changed }
      }
      view.addGestureRecognizer(pan)
      let before = Diagnostic.layout.count
      _ = RunLoop.main.schedule(in: .milliseconds(95)) { _ in stage.log.write("timer") }
      stage.send(.press(0, 0), .drag(3, 0), at: 10)
      _ = RunLoop.main.schedule(in: .milliseconds(200), block: MainActor.handler { _ in stage.application.terminate() })
      try stage.application.run()
      #expect(stage.log.text == "timer" && count > Window.layoutRounds && count < 1000, "\(count)")
      #expect(Diagnostic.layout.count > before)
    }
  }

  @Test("an action that always causes its own call does not delay a press, and Ctrl-C still ends the program")
  func pressBehindEndlessAction() throws {
    try perform { stage, view in
      let time = stage.time
      var count = 0
      let pan = PanGestureRecognizer { pan in
        count += 1
        time.spend(.milliseconds(1))
        // Nothing else would end an endless loop.
        if count < 10_000 { pan.state = .changed }
      }
      view.addGestureRecognizer(pan)
      stage.send(.press(0, 0), .drag(3, 0), at: 10)
      _ = RunLoop.main.schedule(
        in: .milliseconds(95),
        block: MainActor.handler { _ in
          stage.device.send(.press(1, 1, .right), .type(.character("c"), .control))
        })
      _ = RunLoop.main.schedule(
        in: .milliseconds(2000), block: MainActor.handler { _ in stage.application.terminate() })
      try stage.application.run()
      #expect(count > Window.layoutRounds && count < 1000, "\(count)")
    }
  }

  @Test("a gesture recogniser that would wait for itself ends the process with both names", arguments: [1, 2, 3])
  func cycle(length: Int) async throws {
    let result =
      switch length {
      case 1:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await GestureRequirementTests.makeCycle(of: 1)
        }
      case 2:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await GestureRequirementTests.makeCycle(of: 2)
        }
      default:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await GestureRequirementTests.makeCycle(of: 3)
        }
      }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("the recogniser recogniser \(length) cannot require recogniser 1 to fail"), "\(message)")
  }

  /// Makes recognisers that each wait for the next, with the last waiting for the first.
  private static func makeCycle(of length: Int) {
    let recognizers = (1...length).map { number in
      let recognizer = TapGestureRecognizer { _ in }
      recognizer.name = "recogniser \(number)"
      return recognizer
    }
    for (index, recognizer) in recognizers.enumerated() {
      recognizer.require(toFail: recognizers[(index + 1) % length])
    }
  }

  @Test("recognisers may require another one through several paths, as long as none waits for itself")
  func diamond() {
    let (a, b, c, d) = (
      TapGestureRecognizer { _ in }, TapGestureRecognizer { _ in }, TapGestureRecognizer { _ in },
      TapGestureRecognizer { _ in }
    )
    a.require(toFail: b)
    a.require(toFail: c)
    b.require(toFail: d)
    c.require(toFail: d)
    a.require(toFail: d)
    #expect(a.required.count == 3)
  }
}

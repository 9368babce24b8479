// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("The end of an application", .timeLimit(.minutes(20)))
@MainActor
struct EndTests {
  @Test("an application removes its observers from the main loop at its end, and keeps nothing")
  func leaves() throws {
    try VirtualTime.asMain { time in
      let log = Log()
      var device: FakeDevice? = FakeDevice()
      let pipeline: CommitPipeline
      weak var application: Application?
      weak var window: Window?
      do {
        let made = Application(device: device!, window: Window())
        (application, window, pipeline) = (made, made.window, made.pipeline)
        pipeline.add(.init(name: "a client's") { log.write("stage") })
        time.at(.milliseconds(10)) { [weak made] in MainActor.assumeIsolated { made?.terminate() } }
        try made.run()
        made.loop.run(mode: .default, for: .milliseconds(10))
        #expect(log.text == "stage")
      }
      weak var gone: FakeDevice?
      gone = device
      device = nil
      #expect(application == nil && window == nil && gone == nil)
      pipeline.setNeedsCommit()
      pipeline.whenCommitted { log.write("\($0.cause)") }
      try time.advance(by: .milliseconds(100))
      #expect(log.text == "stage invalidated")
    }
  }

  @Test("a stop inside a nested run ends that run first, and then the application")
  func nestedRun() throws {
    try Stage.perform { stage in
      let loop = stage.application.loop
      stage.logged = { _ in false }
      stage.at(50) {
        loop.perform {
          let result = loop.run(mode: .default, for: .seconds(1))
          MainActor.assumeIsolated { stage.log.write("\(result)") }
        }
      }
      stage.at(60) { stage.application.terminate() }
      stage.at(300) {
        stage.log.write("late")
        loop.stop()
      }
      try stage.run(until: 200)
      #expect(stage.log.text == "stopped")
    }
  }

  @Test("a gesture in progress reports its cancellation, and changes by its action are shown")
  func gesture() throws {
    try Stage.perform { stage in
      let label = Label(frame: Rect(x: 0, y: 0, width: 20, height: 1))
      let pan = PanGestureRecognizer { label.text = "\($0.state)" }
      stage.window.addSubview(label)
      label.addGestureRecognizer(pan)
      stage.send(.press(3, 0), .drag(6, 0), at: 100)
      stage.at(150) { #expect(stage.device.text == "began") }
      try stage.run(until: 200)
      #expect(stage.device.text == "cancelled")
    }
  }

  @Test(
    "completion blocks that each begin a transaction end with the application, the last one in a later turn")
  func chain() throws {
    try Stage.perform { stage in
      var count = 0
      @MainActor func next() {
        count += 1
        // This many cannot mean an endless chain.
        guard count < 1000 else { return }
        Transaction.begin()
        Transaction.setCompletionBlock { next() }
        Transaction.commit()
      }
      stage.at(95) { next() }
      try stage.run(until: 200)
      // One frame each: for the last change, for the application's end, and for the block that waited for the next
      // one.
      let shown = count
      #expect((8...11).contains(shown), "\(shown)")
      stage.application.loop.run(mode: .default, for: .zero)
      #expect((shown + 1..<shown + 10).contains(count))
    }
  }

  @Test("an application suspended at its end still shows frames in its next run")
  func suspended() throws {
    try Stage.perform { stage in
      let label = Label("once", frame: Rect(x: 0, y: 0, width: 20, height: 1))
      stage.window.addSubview(label)
      stage.at(50) { stage.device.suspend() }
      try stage.run(until: 100)
      #expect(stage.device.text == "once")
      label.text = "again"
      try stage.run(until: 200)
      #expect(stage.device.text == "again")
    }
  }

  @Test("after an application's end the mode is the default one again, and mode owners are notified")
  func mode() throws {
    try Stage.perform { stage in
      let owner = Log()
      var modes: [RunLoop.Mode] = []
      stage.application.modeDidChange = { modes.append($0) }
      stage.at(10) { stage.application.push(.tracking, for: owner) }
      try stage.run(until: 20)
      #expect(modes == [.tracking, .default] && stage.application.mode == .default)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("An application", .timeLimit(.minutes(20)))
@MainActor
struct ApplicationTests {
  @Test("a device that cannot be opened leaves nothing behind, and its error is thrown")
  func failure() throws {
    try Stage.perform { stage in
      stage.device.failure = .notATerminal(descriptor: 0)
      #expect(throws: DisplayError.notATerminal(descriptor: 0)) { try stage.application.run() }
      #expect(stage.device.client == nil && stage.log.text == "")
      stage.device.failure = nil
      let end = try stage.run(until: 10)
      #expect(end == .terminated)
    }
  }

  @Test("a hang-up ends the application at once without another frame, and drops unread input")
  func hangUp() throws {
    try Stage.perform { stage in
      let field = TextField(frame: Rect(x: 0, y: 0, width: 9, height: 1))
      stage.window.addSubview(field)
      field.becomeFirstResponder()
      stage.send(.type(.character("a")), .hangUp, .type(.character("b")), at: 10)
      let end = try stage.run(until: 1_000_000)
      #expect(end == .hungUp && stage.time.elapsed == .milliseconds(10))
      #expect(stage.device.text == "" && !stage.device.isOpen && field.text == "a")
    }
  }

  @Test("the last changes are shown before the end, and an application can run again")
  func again() throws {
    try Stage.perform { stage in
      let label = Label("a", frame: Rect(x: 0, y: 0, width: 9, height: 1))
      stage.window.addSubview(label)
      for turn in 1...3 {
        stage.at(10 * turn) {
          label.text = "turn \(turn)"
          stage.application.terminate()
          // The first reason counts.
          stage.application.terminate(.hungUp)
        }
        let end = try stage.application.run()
        #expect(end == .terminated && stage.device.text == "turn \(turn)")
      }
    }
  }

  @Test("a stop from elsewhere ends a run but not the application")
  func stop() throws {
    try Stage.perform { stage in
      stage.logged = { step in if case .stage(.entry, _) = step { true } else { false } }
      stage.at(10) { RunLoop.main.stop() }
      try stage.run(until: 20)
      #expect(stage.log.text == "E E" && stage.time.elapsed == .milliseconds(20))
    }
  }

  @Test(
    "Ctrl-C ends, Ctrl-L redraws everything, Ctrl-Z suspends, and a responder can take these keys"
  )
  func keys() throws {
    final class Keeper: View {
      override var canBecomeFirstResponder: Bool { true }
      override func keyPressed(_ key: KeyEvent) {}
    }
    try Stage.perform { stage in
      let keeper = Keeper(frame: Rect(x: 0, y: 0, width: 2, height: 2))
      stage.window.addSubview(keeper)
      keeper.becomeFirstResponder()
      stage.send(.type(.character("c"), .control), .type(.character("l"), .control), at: 10)
      stage.at(20) { #expect(stage.device.repaints == 0 && keeper.resignFirstResponder()) }
      stage.send(.type(.character("l"), .control), .type(.character("l")), at: 30)
      stage.at(40) { #expect(stage.device.repaints == 1 && stage.device.presentations == 2) }
      stage.send(.type(.character("c"), .control), at: 50)
      let end = try stage.run(until: 1000)
      #expect(end == .terminated && stage.time.elapsed == .milliseconds(50))
    }
  }

  @Test("each owner pushes one mode, the last one counts, and an owner that leaves does not disturb the others")
  func modeStack() {
    let (a, b) = (Log(), Log())
    let (first, second) = (ObjectIdentifier(a), ObjectIdentifier(b))
    var stack = ModeStack()
    #expect(stack.current == .default)
    #expect(stack.push(.tracking, for: first) && stack.current == .tracking)
    #expect(!stack.push("other", for: first) && !stack.push(.tracking, for: second))
    #expect(!stack.pop(first) && stack.current == .tracking)
    #expect(!stack.pop(first) && stack.pop(second) && stack.current == .default)
    #expect(stack.push("other", for: first) && stack.push(.tracking, for: second) && stack.pop(second))
    #expect(stack.current == "other")
  }

  @Test("a mode in which nothing would serve the device is rejected and reported")
  func uncommonMode() async {
    // Needs its own process, because the reports of other tests are counted too.
    await #expect(processExitsWith: .success) {
      try await MainActor.run {
        try Stage.perform { stage in
          let owner = Log()
          stage.at(10) { stage.application.push("uncommon", for: owner) }
          stage.at(20) { #expect(stage.application.mode == .default) }
          try stage.run(until: 30)
          #expect(RunLoop.diagnosticCount == 1)
        }
      }
    }
  }

  @Test("a running application's window cannot be given to another one, and the message says so")
  func windowOfAnother() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try await MainActor.run {
        try Stage.perform { stage in
          stage.window.name = "the only one"
          stage.at(10) { _ = Application(device: FakeDevice(), window: stage.window) }
          try stage.run(until: 30)
        }
      }
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("the window the only one belongs to an application that is running"), "\(message)")
  }

  @Test("if two applications share a window, the running one shows it")
  func sharedWindow() throws {
    try Stage.perform { stage in
      let label = Label("a", frame: Rect(x: 0, y: 0, width: 9, height: 1))
      stage.window.addSubview(label)
      let other = Application(device: FakeDevice(), window: stage.window)
      stage.at(10) { label.text = "b" }
      try stage.run(until: 30)
      #expect(stage.device.text == "b" && stage.window.application === stage.application && other.frameCount == 0)
    }
  }

  @Test("timers of the default mode wait while the application tracks; common ones do not")
  func timers() throws {
    try Stage.perform { stage in
      stage.logged = { _ in false }
      let owner = Log()
      RunLoop.main.every(.milliseconds(10)) { _ in stage.log.write("default") }
      RunLoop.main.every(.milliseconds(10), mode: .common) { _ in stage.log.write("common") }
      stage.at(15) { stage.application.push(.tracking, for: owner) }
      stage.at(35) { stage.application.popMode(for: owner) }
      try stage.run(until: 45)
      #expect(stage.log.text == "default common common common default common default")
    }
  }

  @Test("a device whose size differs from its window is shown nothing until the window has that size")
  func sizeBehind() throws {
    try Stage.perform(width: 8, height: 2) { stage in
      let label = Label("a", frame: Rect(x: 0, y: 0, width: 8, height: 1))
      stage.window.addSubview(label)
      stage.at(10) {
        stage.device.size = Size(width: 20, height: 5)
        label.text = "b"
      }
      stage.at(50) { #expect(stage.device.text == "a") }
      stage.send(.size(20, 5), at: 60)
      try stage.run(until: 100)
      #expect(stage.device.text == "b" && stage.device.shown.size == Size(width: 20, height: 5))
    }
  }
}

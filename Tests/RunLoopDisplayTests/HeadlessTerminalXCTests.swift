// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplay
import RunLoopDisplayTesting
import RunLoopTesting
import XCTest

import class RunLoopCore.RunLoop

/// Logs what a device reports, and shows frames.
@MainActor
private final class Client: DisplayDeviceClient {
  let time: VirtualTime
  var events: [InputEvent] = []
  var reads: [Int] = []

  init(_ time: VirtualTime) { self.time = time }

  func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent]) {
    self.events += events
    reads.append(bytes)
    for event in events {
      switch event {
      case .key(let event): time.log.write("\(event.key)")
      case .hangUp: time.log.write("hangUp")
      case .resize(let size): time.log.write("\(size.width)x\(size.height)")
      case .paste(let text, _): time.log.write("paste:\(text)")
      case .mouse(let event): time.log.write("mouse:\(event.location.x),\(event.location.y)")
      case .focus(let isInFront): time.log.write("focus:\(isInFront)")
      }
    }
  }

  func deviceIsReadyForFrame(_ device: any DisplayDevice) { time.log.write("ready") }
  func deviceWillSuspend(_ device: any DisplayDevice) { time.log.write("suspend") }
  func deviceDidResume(_ device: any DisplayDevice) { time.log.write("resume") }
}

@MainActor
private func onTerminal(
  _ terminal: HeadlessTerminal, _ body: (VirtualTime, Client) throws -> Void
) throws {
  try VirtualTime.asMain { time in
    let client = Client(time)
    terminal.client = client
    try terminal.open()
    defer { terminal.close() }
    try time.advance(by: .zero)
    time.log.clear()
    client.reads = []
    try body(time, client)
    XCTAssertEqual(terminal.errors, [])
  }
}

@MainActor
private func text(_ text: String, _ size: Size) -> Grid {
  var canvas = Canvas(size: size)
  for (row, line) in text.split(separator: "\n").enumerated() { canvas.draw(line, at: Point(x: 0, y: row)) }
  return canvas.grid
}

// XCTest runs its tests on the main thread, where devices live, but does not find tests isolated to the main actor.
final class HeadlessTerminalXCTests: XCTestCase {
  func testAFrameIsOnTheScreenAndTheSameOneAgainTakesNoByte() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 3))
      try onTerminal(terminal) { _, _ in
        XCTAssertEqual(terminal.modes, [1002, 1004, 1006, 1049, 2004, 2027])
        let grid = text("hello 世界\nsecond", terminal.size)
        XCTAssertGreaterThan(terminal.present(grid), 0)
        XCTAssertEqual(terminal.screen, "hello 世界\nsecond")
        XCTAssertEqual(terminal.present(grid), 0)
        terminal.repaint()
        XCTAssertGreaterThan(terminal.present(grid), 0)
        XCTAssertEqual(terminal.frameBytes.map { $0 > 0 }, [true, false, true])
      }
      XCTAssertEqual(terminal.modes, [7, 25])
    }
  }

  func testInputComesThroughASourceOneAndOnce() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal()
      try onTerminal(terminal) { time, client in
        terminal.type("ab")
        XCTAssertEqual(client.events, [])
        try time.advance(by: .zero)
        XCTAssertEqual(time.log.callOuts, "S1 character(\"a\") character(\"b\")")
        XCTAssertEqual(client.reads, [2])
        time.log.clear()
        terminal.press(.up)
        terminal.press(.character("c"), modifiers: .control)
        terminal.paste("x\ny")
        terminal.drag([Point(x: 1, y: 2), Point(x: 3, y: 2)])
        terminal.focus(false)
        try time.advance(by: .zero)
        XCTAssertEqual(
          time.log.callOuts,
          "S1 up character(\"c\") paste:x\ny mouse:1,2 mouse:3,2 mouse:3,2 focus:false")
      }
    }
  }

  func testEveryKeyThatIsPressedIsTheOneThatComes() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal()
      try onTerminal(terminal) { time, client in
        let keys: [KeyEvent.Key] =
          [.up, .down, .left, .right, .home, .end, .insert, .delete, .pageUp, .pageDown]
          + (1...24).map { .function($0) }
        for modifiers: KeyModifiers in [[], .shift, .alt, .control, [.shift, .control, .alt]] {
          for key in keys {
            client.events = []
            terminal.press(key, modifiers: modifiers)
            try time.advance(by: .zero)
            XCTAssertEqual(client.events, [.key(KeyEvent(key, modifiers: modifiers))])
          }
        }
        for key: KeyEvent.Key in [.enter, .tab, .backspace, .character("x"), .character("世")] {
          client.events = []
          terminal.press(key, modifiers: .alt)
          try time.advance(by: .zero)
          XCTAssertEqual(client.events, [.key(KeyEvent(key, modifiers: .alt))])
        }
      }
    }
  }

  func testALoneEscapeIsAKeyAfterFiftyMilliseconds() throws {
    try MainActor.assumeIsolated {
      var features = HeadlessTerminal.Features.all
      features.keyboard = false
      let terminal = HeadlessTerminal(features: features)
      try onTerminal(terminal) { time, _ in
        terminal.press(.escape)
        try time.advance(by: .milliseconds(49))
        XCTAssertEqual(time.log.timedCallOuts, "S1@0")
        try time.advance(by: .milliseconds(1))
        XCTAssertEqual(time.log.timedCallOuts, "S1@0 T@50 escape@50")
        time.log.clear()
        terminal.send([0x1B])
        try time.advance(by: .milliseconds(40))
        terminal.type("[A")
        try time.advance(by: .milliseconds(500))
        XCTAssertEqual(time.log.callOuts, "S1 S1 up")
      }
    }
  }

  func testWithNothingToDoNobodyIsWoken() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal()
      try onTerminal(terminal) { time, _ in
        terminal.press(.up)
        try time.advance(by: .zero)
        time.log.clear()
        try time.advance(by: .seconds(3000))
        XCTAssertEqual(time.log.callOuts, "")
        XCTAssertNil(time.timeUntilNext)
      }
    }
  }

  func testATerminalThatDoesNotReadHoldsTheNextFrameBack() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal(size: Size(width: 40, height: 10), outputCapacity: 100)
      try onTerminal(terminal) { time, client in
        terminal.present(text("first", terminal.size))
        terminal.isReading = false
        var canvas = Canvas(size: terminal.size)
        for y in 0..<10 { canvas.draw("row \(y) with a lot of text in it \(y)", at: Point(x: 0, y: y)) }
        XCTAssertTrue(terminal.isReadyForFrame)
        terminal.present(canvas.grid)
        XCTAssertFalse(terminal.isReadyForFrame)
        XCTAssertEqual(terminal.screen, "first")
        terminal.type("x")
        try time.advance(by: .seconds(5))
        XCTAssertEqual(time.log.callOuts, "S1 character(\"x\")")
        time.log.clear()
        terminal.isReading = true
        try time.advance(by: .zero)
        XCTAssertEqual(time.log.callOuts, "S1 ready")
        XCTAssertTrue(terminal.screen.hasPrefix("row 0 with"))
        terminal.present(canvas.grid)
      }
    }
  }

  func testAResizeASuspensionAndAHangUp() throws {
    try MainActor.assumeIsolated {
      let terminal = HeadlessTerminal(size: Size(width: 10, height: 2))
      try onTerminal(terminal) { time, _ in
        terminal.present(text("ab", terminal.size))
        terminal.resize(to: Size(width: 0, height: 0))
        try time.advance(by: .zero)
        XCTAssertEqual(time.log.callOuts, "S1 1x1")
        terminal.present(text("ab", terminal.size))
        XCTAssertEqual(terminal.screen, "a")
        terminal.suspend()
        XCTAssertFalse(terminal.isReadyForFrame)
        XCTAssertEqual(terminal.modes, [7, 25])
        terminal.resume()
        terminal.present(text("b", terminal.size))
        XCTAssertEqual(terminal.screen, "b")
        terminal.hangUp()
        terminal.hangUp()
        terminal.type("x")
        try time.advance(by: .seconds(1))
        XCTAssertEqual(time.log.callOuts, "S1 1x1 suspend resume S1 hangUp")
        XCTAssertFalse(terminal.isReadyForFrame)
      }
    }
  }

  func testADumbTerminalIsRejectedInOneSentence() throws {
    try MainActor.assumeIsolated {
      var features = HeadlessTerminal.Features.none
      features.environment["TERM"] = "dumb"
      let terminal = HeadlessTerminal(features: features)
      XCTAssertThrowsError(try terminal.open()) { error in
        XCTAssertEqual("\(error)", "The terminal cannot show a screen: the variable TERM is \"dumb\".")
      }
      features.environment = [:]
      XCTAssertThrowsError(try HeadlessTerminal(features: features).open()) { error in
        XCTAssertEqual(error as? DisplayError, .unusableTerminal(name: nil))
      }
    }
  }

  func testWhatIsNoTerminalIsRejected() throws {
    try MainActor.assumeIsolated {
      let file = FileManager.default.temporaryDirectory.appendingPathComponent(
        "no terminal \(ProcessInfo.processInfo.processIdentifier)")
      _ = FileManager.default.createFile(atPath: file.path, contents: nil)
      defer { try? FileManager.default.removeItem(at: file) }
      let handle = try FileHandle(forReadingFrom: file)
      let descriptor = handle.fileDescriptor
      XCTAssertThrowsError(try Terminal(input: descriptor, output: descriptor).open()) { error in
        XCTAssertEqual(error as? DisplayError, .notATerminal(descriptor: descriptor))
        XCTAssertTrue("\(error)".contains("terminal"))
      }
    }
  }
}

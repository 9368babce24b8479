// SPDX-License-Identifier: Apache-2.0

import CRunLoopTerminal
import Glibc
import RunLoopCore
import RunLoopDisplay
import TestSupport
import XCTest

import class RunLoopCore.RunLoop

/// Records what a terminal reports.
@MainActor
private final class Client: DisplayDeviceClient {
  var events: [InputEvent] = []
  var reads: [Int] = []
  var readies = 0

  func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent]) {
    self.events += events
    reads.append(bytes)
  }

  func deviceIsReadyForFrame(_ device: any DisplayDevice) { readies += 1 }
  func deviceWillSuspend(_ device: any DisplayDevice) {}
  func deviceDidResume(_ device: any DisplayDevice) {}

  /// Runs the main loop until a condition holds.
  func run(until condition: () -> Bool) {
    for _ in 0..<60_000 where !condition() {
      _ = RunLoop.main.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
    }
    XCTAssertTrue(condition())
  }
}

/// Opens a terminal on a pseudo-terminal of the test process itself.
@MainActor
private func onTerminal(columns: Int = 20, _ body: (Terminal, Client, PseudoTerminal) throws -> Void) throws {
  setenv("TERM", "xterm-256color", 1)
  let window = try PseudoTerminal(columns: columns, rows: 4)
  let descriptor = open(window.path, O_RDWR | O_NOCTTY | O_CLOEXEC)
  defer { close(descriptor) }
  let client = Client()
  let terminal = Terminal(input: descriptor, output: descriptor)
  terminal.client = client
  let flags = fcntl(descriptor, F_GETFL)
  try terminal.open()
  // The open file description, which others share, is unchanged.
  XCTAssertEqual(fcntl(descriptor, F_GETFL), flags)
  try body(terminal, client, window)
  terminal.close()
}

final class TerminalXCTests: XCTestCase {
  func testATerminalInItsOwnProcessTakesFramesAndGivesEvents() throws {
    try MainActor.assumeIsolated {
      try onTerminal { terminal, client, window in
        XCTAssertEqual(terminal.size, Size(width: 20, height: 4))
        var canvas = Canvas(size: terminal.size)
        canvas.draw("hello", at: .zero)
        XCTAssertGreaterThan(terminal.present(canvas.grid), 0)
        XCTAssertEqual(terminal.present(canvas.grid), 0)
        XCTAssertNotNil(window.expect("\u{1B}[2Jhello"))
        window.type("a\u{1B}[<0;3;2M")
        client.run { client.events.count == 2 }
        XCTAssertEqual(client.events[0], .key(KeyEvent(.character("a"))))
        XCTAssertEqual(client.events[1], .mouse(MouseEvent(.press(.left), at: Point(x: 2, y: 1))))
        // An escape sequence that arrives in two halves while the loop is late is one key.
        client.events = []
        window.type("\u{1B}")
        client.run { client.reads.count == 2 }
        usleep(80_000)
        window.type("[A")
        client.run { !client.events.isEmpty }
        XCTAssertEqual(client.events, [.key(KeyEvent(.up))])
        // Opening it again has no effect.
        try terminal.open()
      }
    }
  }

  func testATerminalThatSaysThatItIsHugeIsUsedInPart() throws {
    try MainActor.assumeIsolated {
      try onTerminal(columns: 65_535) { terminal, _, _ in
        XCTAssertEqual(terminal.size, Size(width: Terminal.maximumSide, height: 4))
      }
    }
  }

  func testTerminalsLeaveNoDescriptorOpen() throws {
    try MainActor.assumeIsolated {
      try onTerminal { _, client, window in
        window.type("x")
        client.run { !client.events.isEmpty }
      }
      var before = DescriptorCensus()
      // Loops of earlier tests may open one of their own meanwhile, but not each time.
      for attempt in 0..<5 {
        for _ in 0..<8 { try onTerminal { _, _, _ in } }
        for _ in 0..<8 {
          try onTerminal { _, client, window in
            window.hangUp()
            client.run { !client.events.isEmpty }
          }
        }
        let after = DescriptorCensus()
        if before.isFollowed(by: after) { return }
        if attempt == 4 { XCTFail("\(before) \(after)") }
        before = after
      }
    }
  }

  func testATerminalThatGoesAwayIsOneEventAndNothingSpins() throws {
    try MainActor.assumeIsolated {
      try onTerminal { terminal, client, window in
        window.hangUp()
        client.run { !client.events.isEmpty }
        XCTAssertEqual(client.events, [.hangUp])
        XCTAssertFalse(terminal.isReadyForFrame)
        let passes = client.reads.count
        for _ in 0..<10 { _ = RunLoop.main.run(mode: .default, for: .milliseconds(1)) }
        XCTAssertEqual(client.reads.count, passes)
        terminal.suspend()
        terminal.repaint()
      }
    }
  }

  func testAFrameOnATerminalThatHasGoneIsNoTrap() throws {
    try MainActor.assumeIsolated {
      try onTerminal { terminal, client, window in
        window.hangUp()
        XCTAssertTrue(terminal.isReadyForFrame)
        terminal.present(Grid(size: terminal.size))
        client.run { !client.events.isEmpty }
        XCTAssertEqual(client.events, [.hangUp])
      }
    }
  }

  func testATerminalIsTakenByOneDeviceAtATime() throws {
    try MainActor.assumeIsolated {
      setenv("TERM", "xterm-256color", 1)
      let window = try PseudoTerminal()
      let other = try PseudoTerminal()
      let modes = window.modes
      let descriptors = [window, window, other].map { open($0.path, O_RDWR | O_NOCTTY | O_CLOEXEC) }
      defer { for descriptor in descriptors { close(descriptor) } }
      let first = Terminal(input: descriptors[0], output: descriptors[0])
      let second = Terminal(input: descriptors[1], output: descriptors[1])
      // Its output is a different terminal.
      let third = Terminal(input: descriptors[1], output: descriptors[2])
      try first.open()
      for terminal in [second, third] {
        XCTAssertThrowsError(try terminal.open()) { error in
          XCTAssertEqual(error as? DisplayError, .taken)
          XCTAssertEqual("\(error)", "The terminal is taken already: close the other device of it first.")
        }
      }
      XCTAssertNotEqual(window.modes, modes)
      first.close()
      XCTAssertEqual(window.modes, modes)
      try second.open()
      second.close()
      XCTAssertEqual(window.modes, modes)
      // An attempt that failed midway holds neither of them.
      try third.open()
      third.close()
      XCTAssertEqual(window.modes, modes)
    }
  }

  func testTheNinthTerminalIsRejectedWithItsCause() throws {
    try MainActor.assumeIsolated {
      setenv("TERM", "xterm-256color", 1)
      let windows = try (0..<9).map { _ in try PseudoTerminal() }
      let descriptors = windows.map { open($0.path, O_RDWR | O_NOCTTY | O_CLOEXEC) }
      defer { for descriptor in descriptors { close(descriptor) } }
      let terminals = descriptors.map { Terminal(input: $0, output: $0) }
      for terminal in terminals.dropLast() { try terminal.open() }
      XCTAssertThrowsError(try terminals[8].open()) { error in
        XCTAssertEqual(error as? DisplayError, .tooManyTerminals(limit: 8))
        XCTAssertEqual("\(error)", "The terminal cannot be taken: a process can have 8 at a time.")
      }
      terminals[0].close()
      try terminals[8].open()
      for terminal in terminals { terminal.close() }
    }
  }

  func testATerminalThatIsReleasedIsRestored() throws {
    try MainActor.assumeIsolated {
      setenv("TERM", "xterm-256color", 1)
      let window = try PseudoTerminal()
      let modes = window.modes
      let descriptor = open(window.path, O_RDWR | O_NOCTTY | O_CLOEXEC)
      defer { close(descriptor) }
      var terminal: Terminal? = Terminal(input: descriptor, output: descriptor)
      try terminal?.open()
      XCTAssertNotEqual(window.modes, modes)
      terminal = nil
      XCTAssertEqual(window.modes, modes)
      XCTAssertNotNil(window.expect("\u{1B}[?1049l"))
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import Testing

@testable import RunLoopDisplay

@Suite("Bad terminals", .timeLimit(.minutes(20)))
@MainActor
struct FaultTests {
  /// A label, a focused field and a button on a faulty terminal.
  @MainActor
  private final class Screen {
    let window = Window()
    let label = Label("", frame: Rect(x: 0, y: 0, width: 20, height: 1))
    let field = TextField(frame: Rect(x: 0, y: 1, width: 20, height: 1))
    private(set) var presses = 0

    init() {
      let button = Button("[ok]", frame: Rect(x: 0, y: 2, width: 4, height: 1)) { [unowned self] in presses += 1 }
      for view in [label, field, button] { window.addSubview(view) }
      field.becomeFirstResponder()
    }
  }

  private func perform(
    _ change: (inout HeadlessTerminal.Faults) -> Void,
    _ body: @MainActor (HeadlessTerminal, Screen, (Int) throws -> Void) throws -> Void
  ) throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 3))
      change(&terminal.faults)
      let screen = Screen()
      let application = Application(device: terminal, window: screen.window)
      try application.start()
      try time.advance(by: .milliseconds(40))
      try body(terminal, screen) { try time.advance(by: .milliseconds($0), inMode: application.mode) }
      #expect(terminal.errors == [])
      application.finish()
    }
  }

  @Test("text after characters that the terminal believes narrow stays in place")
  func widths() throws {
    try perform({ $0.unicodeVersion = 12 }) { terminal, screen, wait in
      screen.label.text = "🛜|🪆|漢|"
      try wait(40)
      #expect(terminal.line(0) == "🛜 |🪆 |漢|")
      screen.label.text = "a🛜|🪆|漢|"
      try wait(40)
      #expect(terminal.line(0) == "a🛜 |🪆 |漢|")
    }
  }

  @Test("typed text arrives late but in order, and late replies are not taken for keys")
  func latency() throws {
    try perform({ $0.latency = .milliseconds(700) }) { terminal, screen, wait in
      terminal.type("ab")
      try wait(600)
      #expect(screen.field.text == "")
      terminal.type("c")
      try wait(200)
      #expect(screen.field.text == "ab")
      try wait(1000)
      #expect(screen.field.text == "abc" && terminal.line(1) == "abc")
    }
  }

  @Test("terminal input that arrives byte by byte means the same")
  func split() throws {
    try perform({ $0.readLimit = 1 }) { terminal, screen, wait in
      terminal.type("a漢")
      terminal.press(.left)
      terminal.paste("x")
      terminal.click(at: Point(x: 1, y: 2))
      try wait(100)
      #expect(screen.field.text == "ax漢" && screen.presses == 1)
    }
  }

  @Test("a paste and a press whose ends are lost leave keyboard and mouse usable")
  func ends() throws {
    try perform({ $0.losesEnds = true }) { terminal, screen, wait in
      terminal.paste("abc")
      try wait(1000)
      terminal.type("d")
      try wait(1000)
      #expect(screen.field.text == "abcd")
      terminal.click(at: Point(x: 1, y: 2))
      try wait(40)
      terminal.faults.losesEnds = false
      terminal.click(at: Point(x: 1, y: 2))
      try wait(40)
      #expect(screen.presses == 1)
    }
  }

  @Test("a terminal without mouse and paste modes still reports clicks and keys")
  func modes() throws {
    try perform({ $0.ignoredModes = [1006, 2004, 2026, 2027] }) { terminal, screen, wait in
      terminal.paste("abc")
      terminal.click(at: Point(x: 1, y: 2))
      try wait(100)
      #expect(screen.field.text == "abc" && screen.presses == 1 && terminal.line(1) == "abc")
    }
  }

  @Test("an accent in the last column appears on its letter")
  func lastColumn() throws {
    try perform({ $0.marksMissLastColumn = true }) { terminal, screen, wait in
      screen.label.text = String(repeating: "a", count: 19) + "e\u{301}"
      try wait(40)
      #expect(terminal.line(0) == screen.label.text)
    }
  }
}

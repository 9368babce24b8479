// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("A terminal's features beside its cells", .timeLimit(.minutes(20)))
@MainActor
struct DeviceChannelTests {
  private func perform(
    _ window: Window, _ body: (HeadlessTerminal, @MainActor () throws -> Void) throws -> Void
  ) throws {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 20, height: 5))
      let application = Application(device: terminal, window: window)
      try application.start()
      let settle: @MainActor () throws -> Void = { try time.advance(by: .milliseconds(40), inMode: application.mode) }
      try settle()
      try body(terminal, settle)
      application.finish()
      #expect(terminal.errors == [] && terminal.shownCursor.shape == .block)
    }
  }

  @Test("the cursor follows the typed text invisibly, and is left alone if no view has one")
  func cursor() throws {
    let window = Window()
    let field = TextField(prompt: "> ", frame: Rect(x: 3, y: 2, width: 10, height: 1))
    window.addSubview(field)
    try perform(window) { terminal, settle in
      #expect(terminal.cursor == nil)
      field.becomeFirstResponder()
      terminal.type("a世b")
      try settle()
      #expect(terminal.shownCursor == TextCursor(at: Point(x: 9, y: 2)))
      terminal.press(.left)
      terminal.press(.left)
      try settle()
      #expect(terminal.shownCursor.position == Point(x: 6, y: 2))
      terminal.type("0123456789")
      try settle()
      #expect(terminal.shownCursor.position.x < 13)
      field.isHidden = true
      try settle()
      #expect(terminal.cursor == nil)
    }
  }

  @Test("a prompt as wide as its field leaves room for what is typed", arguments: [10, 18, 20])
  func widePrompt(width: Int) throws {
    let window = Window()
    let field = TextField(prompt: "12345678901234567890", frame: Rect(x: 0, y: 0, width: width, height: 1))
    window.addSubview(field)
    try perform(window) { terminal, settle in
      field.becomeFirstResponder()
      terminal.type("ab")
      try settle()
      #expect(terminal.shownCursor.position.x < width)
      #expect(terminal.line(0).contains("ab"))
    }
  }

  @Test("a view can show the terminal's own cursor in any of its shapes")
  func shapes() throws {
    final class Editor: View {
      override var canBecomeFirstResponder: Bool { true }
      override var textCursor: TextCursor? { TextCursor(at: Point(x: 1, y: 1), shape: .bar) }
    }
    let window = Window()
    let editor = Editor(frame: Rect(x: 2, y: 1, width: 5, height: 3))
    window.addSubview(editor)
    editor.becomeFirstResponder()
    try perform(window) { terminal, settle in
      #expect(terminal.shownCursor == TextCursor(at: Point(x: 3, y: 2), shape: .bar) && terminal.modes.contains(25))
      editor.resignFirstResponder()
      editor.setNeedsDisplay()
      try settle()
      #expect(!terminal.modes.contains(25))
    }
  }

  @Test("the title, the bell and the clipboard reach the terminal, without control characters")
  func channel() throws {
    try perform(Window()) { terminal, settle in
      terminal.setTitle("a\u{1B}\u{7}b\u{9C}世")
      terminal.ringBell()
      for text in ["", "a", "ab", "abc", "abcdé世🙂\n"] {
        terminal.copy(text)
        #expect(terminal.clipboard == text)
      }
      try settle()
      #expect(terminal.title == "ab世" && terminal.bellCount == 1)
    }
  }

  @Test("a letter with a mark in the last column is written so that no terminal attaches the mark to another letter")
  func lastColumn() throws {
    let window = Window()
    window.addSubview(Label("cafe\u{301}", frame: Rect(x: 16, y: 0, width: 4, height: 1)))
    window.addSubview(Label("日本\u{304B}\u{3099}", frame: Rect(x: 14, y: 4, width: 6, height: 1)))
    try perform(window) { terminal, _ in
      #expect(terminal.line(0).hasSuffix("cafe\u{301}") && terminal.line(4).hasSuffix("日本\u{304B}\u{3099}"))
    }
  }

  @Test(
    "a character that the terminal shows narrower, or not at all, leaves nothing of earlier text",
    arguments: [("1\u{FE0F}\u{20E3}", "1 "), ("\u{1FAE9}", "\u{1B}[X\u{1FAE9}"), ("🛜", "\u{1B}[2X🛜")])
  func narrowCharacter(_ character: String, _ written: String) {
    let size = Size(width: 4, height: 1)
    var encoder = FrameEncoder(size: size, capabilities: .init())
    var output: ContiguousArray<UInt8> = []
    for text in ["abcd", "ab" + character] {
      output = []
      var canvas = Canvas(size: size)
      canvas.draw(text, at: .zero)
      encoder.encode(canvas.grid, into: &output)
    }
    #expect(String(decoding: output, as: UTF8.self).contains(written))
  }

  @Test("a character of uncertain width is followed by an absolute column", arguments: ["🛜", "⛹️‍♀️", "🪿"])
  func widths(_ character: String) {
    var canvas = Canvas(size: Size(width: 10, height: 1))
    canvas.draw("a\(character)|", at: .zero)
    var output: ContiguousArray<UInt8> = []
    var encoder = FrameEncoder(size: Size(width: 10, height: 1), capabilities: .init(knowsClusters: true))
    encoder.encode(canvas.grid, into: &output)
    let text = String(decoding: output, as: UTF8.self)
    #expect(text.hasSuffix("\u{1B}[4G|") || text.hasSuffix("\u{1B}[1;4H|"), "\(text.debugDescription)")
  }

  @Test("only ASCII characters are repeated by count, as tmux repeats no others", arguments: ["x", "─", "ｶ"])
  func repeats(_ character: Character) {
    var canvas = Canvas(size: Size(width: 20, height: 1))
    canvas.fill(Rect(x: 0, y: 0, width: 12, height: 1), character)
    var output: ContiguousArray<UInt8> = []
    var encoder = FrameEncoder(size: Size(width: 20, height: 1), capabilities: .init(repeats: true))
    encoder.encode(canvas.grid, into: &output)
    #expect(String(decoding: output, as: UTF8.self).contains("\u{1B}[11b") == (character == "x"))
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay
@testable import RunLoopDisplayTesting

@Suite("Links and underlines")
struct DecorationTests {
  private static let size = Size(width: 20, height: 1)

  private func grid(_ parts: [(String, Style)]) -> Grid {
    var canvas = Canvas(size: Self.size)
    var x = 0
    for (text, style) in parts { x = canvas.draw(text, at: Point(x: x, y: 0), style: style) }
    return canvas.grid
  }

  private var link: Style {
    var style = Style()
    style.link = "https://example.com/a b\u{7}\u{1B}\\é"
    return style
  }
  private var curl: Style {
    var style = Style(attributes: .underline)
    style.underlineStyle = .curly
    style.underlineColor = .rgb(255, 0, 10)
    return style
  }

  @Test("a cell has sixteen bytes and keeps its style")
  func values() {
    #expect(MemoryLayout<Cell>.stride == 16)
    var style = curl
    #expect(style.underlineStyle == .curly && style.underlineColor == .rgb(255, 0, 10) && style.link == nil)
    #expect(style == curl && style != Style(attributes: .underline))
    style.underlineStyle = .single
    style.underlineColor = .default
    #expect(style == Style(attributes: .underline))
  }

  @Test("no byte of a link's address can end its escape sequence, and an overlong address is not set")
  func addresses() {
    #expect(link.link == "https://example.com/a%20b%07%1B\\%C3%A9")
    var style = Style()
    style.link = String(repeating: "x", count: Style.maximumLink)
    #expect(style.link?.count == Style.maximumLink)
    for long in [String(repeating: "x", count: Style.maximumLink + 1), String(repeating: "\n", count: 1000)] {
      style.link = long
      #expect(style.link == nil && style == .plain)
    }
    style.link = ""
    #expect(style.link == nil)
  }

  @Test("a full link table leaves new text without a link and keeps existing links")
  func table() {
    let table = DecorationTable(capacity: 3, bytes: 10)
    func number(_ link: String) -> UInt32 { table.number(of: Decoration(link: link)) }
    #expect(number("") == 0 && number("a") == 1 && number("12345678901") == 0 && number("b") == 2 && number("c") == 0)
    #expect(number("a") == 1 && table[2].link == "b" && table[9].link == "")
  }

  @Test("links and underlines take few bytes, and go only to terminals that understand them")
  func bytes() {
    let frame = grid([("ab", link), ("cd", curl), ("ef", .plain)])
    var screen = EncodedScreen(Self.size, .all)
    let shown = screen.show(frame)
    #expect(shown.contains("^]8;id="), "\(shown)")
    #expect(
      shown.contains(";https://example.com/a%20b%07%1B\\%C3%A9^\\ab^]8;;^\\^[4:3;58:2::255:0:10mcd^[mef"), "\(shown)")
    #expect(screen.shows(frame) && screen.emulator.errors == [])
    // Only the link of one text changes.
    #expect(screen.show(grid([("ab", .plain), ("cd", curl), ("ef", .plain)])).hasSuffix("\rab^[?2026l"))
    var plain = EncodedScreen(Self.size, .none)
    let text = plain.show(frame)
    #expect(text.contains("ab^[4mcd^[mef"), "\(text)")
    #expect(!text.contains("]8") && !text.contains(":") && plain.emulator.errors == [])
  }

  @Test("support for links and underlines is known from the terminal's name and version")
  func names() {
    for (name, isKnown) in [
      ("kitty(0.36.2)", true), ("foot(1.16.2)", true), ("VTE(7600)", true), ("WezTerm 20240203", true),
      ("tmux 3.4", true), ("tmux 3.10", true), ("tmux next-3.5", true), ("tmux 3.3a", false), ("XTerm(380)", false),
      ("something", false),
    ] {
      var capabilities = TerminalCapabilities()
      capabilities.note(version: name)
      #expect(capabilities.decorates == isKnown, "\(name)")
    }
  }

  @Test("content shown before the terminal reported its name is redrawn with links")
  func late() {
    let frame = grid([("ab", link)])
    var screen = EncodedScreen(Self.size, .all)
    screen.encoder.capabilities.decorates = false
    #expect(!screen.show(frame).contains("]8"))
    screen.encoder.capabilities.decorates = true
    #expect(screen.show(frame).contains("]8") && screen.shows(frame))
    #expect(screen.show(frame) == "")
  }
}

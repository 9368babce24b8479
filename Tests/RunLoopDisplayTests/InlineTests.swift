// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay
@testable import RunLoopDisplayTesting

@Suite("Frames below what is on the screen")
struct InlineTests {
  private static let screen = Size(width: 20, height: 8)

  /// A terminal with some shell output, and a session that occupies three rows below it.
  private struct Shell {
    var emulator = ScreenEmulator(size: InlineTests.screen, features: .all)
    var session: TerminalSession

    init(lines: Int, rows: Int = 3, features: HeadlessTerminal.Features = .all, restoresWrapping: Bool = false) {
      emulator = ScreenEmulator(size: InlineTests.screen, features: features)
      emulator.restoresWrapping = restoresWrapping
      emulator.scrollsAtEnd = true
      session = TerminalSession(
        size: Size(width: InlineTests.screen.width, height: rows),
        capabilities: TerminalCapabilities(environment: { features.environment[$0] }), isInline: true)
      for line in 0..<lines { emulator.write("line \(line)\r\n".utf8) }
      perform { $0.enter(asks: true, into: &$1) }
      // The terminal replies.
      let answers = emulator.answers
      perform { session, output in
        var events: [InputEvent] = []
        answers.withUnsafeBytes { session.receive($0, events: &events, output: &output) }
        #expect(events == [])
      }
    }

    mutating func perform(_ body: (inout TerminalSession, inout ContiguousArray<UInt8>) -> Void) {
      var bytes: ContiguousArray<UInt8> = []
      body(&session, &bytes)
      emulator.write(bytes)
    }

    mutating func show(_ lines: [String]) {
      var canvas = Canvas(size: Size(width: InlineTests.screen.width, height: 3))
      for (row, line) in lines.enumerated() { canvas.draw(line, at: Point(x: 0, y: row)) }
      perform { session, bytes in session.encoder.encode(canvas.grid, into: &bytes) }
    }

    /// Changes the window's height and moves its contents: lines leave or return at its upper edge.
    mutating func resize(rows: Int, movedBy distance: Int) {
      let size = Size(width: InlineTests.screen.width, height: rows)
      var before = emulator
      emulator = ScreenEmulator(size: size, features: before.features)
      emulator.scrollsAtEnd = true
      for y in 0..<before.grid.size.height where (0..<rows).contains(y + distance) {
        emulator.write("\u{1B}[\(y + distance + 1)H\(before.grid.text(row: y))".utf8)
      }
      let (x, y) = (min(before.x, size.width - 1), before.y + distance)
      before.write("\u{1B}8".utf8)
      // The saved position is relative to the window, and stays in it.
      emulator.write("\u{1B}[\(min(before.y, rows - 1) + 1);\(before.x + 1)H\u{1B}7\u{1B}[\(y + 1);\(x + 1)H".utf8)
      for mode in before.modes { emulator.write("\u{1B}[?\(mode)h".utf8) }
      for mode in [7, 25] where !before.modes.contains(mode) { emulator.write("\u{1B}[?\(mode)l".utf8) }
      for flags in before.keyboards { emulator.write("\u{1B}[>\(flags)u".utf8) }
      perform { $0.resize(to: Size(width: size.width, height: min(rows, 3)), into: &$1) }
    }

    var text: [String] {
      var rows = (0..<emulator.grid.size.height).map { emulator.grid.text(row: $0) }
      while rows.last == "" { rows.removeLast() }
      return rows
    }
  }

  @Test("an inline frame appears below existing lines, survives the terminal's restoration, and changes no other line")
  func frames() {
    var shell = Shell(lines: 2)
    shell.show(["a", "b", "c"])
    #expect(shell.text == ["line 0", "line 1", "a", "b", "c"])
    shell.show(["a", "", "cd"])
    #expect(shell.text == ["line 0", "line 1", "a", "", "cd"])
    shell.perform { $0.leave(into: &$1) }
    shell.emulator.write("$ next".utf8)
    #expect(shell.text == ["line 0", "line 1", "a", "", "cd", "$ next"])
    #expect(shell.emulator.errors == [] && shell.emulator.modes == [7, 25] && shell.emulator.keyboards == [])
  }

  @Test("at the bottom of the screen, an inline frame scrolls existing lines up only as far as needed")
  func scroll() {
    var shell = Shell(lines: 7)
    shell.show(["a", "b", "c"])
    #expect(shell.text == ["line 2", "line 3", "line 4", "line 5", "line 6", "a", "b", "c"])
    shell.show(["a", "b", "d"])
    shell.perform { $0.leave(into: &$1) }
    #expect(shell.text == ["line 3", "line 4", "line 5", "line 6", "a", "b", "d"] && shell.emulator.errors == [])
    // Taken again, as after Ctrl-Z.
    shell.perform { $0.enter(asks: false, into: &$1) }
    shell.show(["a", "b", "d"])
    #expect(shell.text == ["line 5", "line 6", "a", "b", "d", "a", "b", "d"])
  }

  @Test("an inline frame of another size begins where the previous one did")
  func resize() {
    var shell = Shell(lines: 1)
    shell.show(["a", "b", "c"])
    shell.perform { session, _ in session.encoder.resize(to: Size(width: 10, height: 3)) }
    shell.show(["0123456789abc", "b", ""])
    #expect(shell.text == ["line 0", "0123456789", "b"])
    #expect(shell.emulator.errors == [])
  }

  @Test("resizing the window moves an inline frame with the lines above it, and leaves those unchanged")
  func windowSizes() {
    var shell = Shell(lines: 7)
    shell.show(["a", "b", "c"])
    #expect(shell.text == ["line 2", "line 3", "line 4", "line 5", "line 6", "a", "b", "c"])
    // The cursor is in the frame's last row.
    shell.resize(rows: 5, movedBy: -3)
    shell.show(["a", "b", "d"])
    #expect(shell.text == ["line 5", "line 6", "a", "b", "d"])
    shell.resize(rows: 9, movedBy: 4)
    shell.show(["a", "b", "e"])
    #expect(shell.text == ["", "", "", "", "line 5", "line 6", "a", "b", "e"])
    // Two resizes without a frame between them.
    shell.resize(rows: 7, movedBy: -2)
    shell.resize(rows: 8, movedBy: 1)
    shell.show(["a", "b", "f"])
    #expect(shell.text == ["", "", "", "line 5", "line 6", "a", "b", "f"])
    shell.resize(rows: 2, movedBy: -6)
    shell.show(["a", "b"])
    #expect(shell.text == ["a", "b"])
    shell.resize(rows: 6, movedBy: 4)
    shell.show(["a", "b", "g"])
    #expect(shell.text == ["", "", "", "a", "b", "g"])
    // The session ends after a resize that no frame followed.
    shell.resize(rows: 5, movedBy: -1)
    shell.perform { $0.leave(into: &$1) }
    shell.emulator.write("$ next".utf8)
    #expect(shell.text == ["", "a", "b", "g", "$ next"])
    #expect(shell.emulator.errors == [])
    #expect(shell.emulator.modes == [7, 25] && shell.emulator.keyboards == [])
  }

  @Test("a window that grows keeps the program's last frame in place, with later output below it")
  func window() throws {
    let terminal = try PseudoTerminal(columns: 20, rows: 8)
    try terminal.start(["return"], environment: ["INLINE": "3"])
    var shell = ScreenEmulator(size: Self.screen, features: .all)
    shell.scrollsAtEnd = true
    for line in 0..<7 { shell.write("line \(line)\r\n".utf8) }
    shell.write(try #require(terminal.expect("frame return")).utf8)
    #expect(shell.grid.text(row: 5) == "frame return" && shell.y == 5)
    // Four lines return at the upper edge, and the window becomes narrower.
    terminal.resize(columns: 19, rows: 12)
    var other = ScreenEmulator(size: Size(width: 19, height: 12), features: .all)
    other.scrollsAtEnd = true
    for y in 0..<8 { other.write("\u{1B}[\(y + 5)H\(shell.grid.text(row: y))".utf8) }
    shell.write("\u{1B}8".utf8)
    other.write("\u{1B}[\(shell.y + 1)H\u{1B}7\u{1B}[10;13H\u{1B}[?7l\u{1B}[?25l\u{1B}[?2004h\u{1B}[?1004h".utf8)
    other.write(try #require(terminal.expect("frame return")).utf8)
    terminal.type("q")
    #expect(terminal.end() == 0)
    other.write(terminal.text.utf8)
    let rows = (4..<12).map { other.grid.text(row: $0) }
    // The newlines after the frame's last row and the program's last line scrolled the screen.
    #expect(rows == ["line 4", "line 5", "line 6", "frame return", "", "", "after", ""])
    #expect(other.errors == [])
  }

  @Test("line wrapping is right even if the terminal restores it with the cursor", arguments: [false, true])
  func wrapping(_ restores: Bool) {
    var shell = Shell(lines: 1, restoresWrapping: restores)
    shell.show(["a", "b", "c"])
    #expect(!shell.emulator.modes.contains(7))
    shell.session.encoder.repaint()
    shell.show(["a", "b", "c"])
    #expect(!shell.emulator.modes.contains(7))
    shell.perform { $0.leave(into: &$1) }
    #expect(shell.emulator.modes == [7, 25] && shell.emulator.errors == [])
  }

  @Test("random inline frames are shown correctly, and change nothing else", arguments: 0..<40)
  func random(_ seed: Int) {
    var random = SplitMix64(seed: UInt64(seed))
    let lines = random.below(10)
    let rows = 1 + random.below(4)
    var shell = Shell(lines: lines, rows: rows, features: random.oneIn(2) ? .all : .none)
    var drawing = RandomDrawing(size: Size(width: Self.screen.width, height: rows), clusters: false)
    for frame in 0..<30 {
      let scrolls = drawing.change(&random)
      let grid = drawing.canvas.grid
      shell.perform { session, bytes in session.encoder.encode(grid, scrolls: scrolls, into: &bytes) }
      let top = min(lines, Self.screen.height - rows)
      for y in 0..<rows {
        for x in 0..<Self.screen.width {
          let style = shell.session.encoder.capabilities.reduced(grid[x, y].style)
          let wanted = Cell(glyph: grid[x, y].glyph, width: grid[x, y].width, style: style)
          let found = shell.emulator.grid[x, top + y]
          let isSame = wanted.width == 0 ? found.width == 0 : Cell.looksSame(wanted, found)
          #expect(isSame, "seed \(seed), frame \(frame): \(x), \(y)")
          if !isSame { return }
        }
      }
      #expect(shell.emulator.errors == [], "seed \(seed), frame \(frame)")
    }
  }
}

@Suite("Widths that a terminal is asked for")
struct WidthProbeTests {
  private func capabilities(
    _ features: HeadlessTerminal.Features, version: Int? = nil, _ change: (inout [UInt8], inout TerminalSession) -> Void
  ) -> TerminalCapabilities {
    var emulator = ScreenEmulator(size: Size(width: 20, height: 3), features: features)
    emulator.faults.unicodeVersion = version
    var session = TerminalSession(
      size: Size(width: 20, height: 3), capabilities: TerminalCapabilities(environment: { features.environment[$0] }))
    var output: ContiguousArray<UInt8> = []
    session.enter(asks: true, into: &output)
    emulator.write(output)
    #expect(emulator.errors == [] && session.isMeasuring)
    for y in 0..<3 { #expect(emulator.grid.text(row: y) == "") }
    var answers = emulator.answers
    change(&answers, &session)
    var events: [InputEvent] = []
    answers.withUnsafeBytes { session.receive($0, events: &events, output: &output) }
    #expect(events == [] && !session.isMeasuring)
    return session.encoder.capabilities
  }

  @Test("widths that match the table are trusted up to the first Unicode version that differs")
  func answers() {
    for (version, expected) in [(nil, 15), (14, 14), (13, 13), (12, 12), (9, 12)] as [(Int?, Int)] {
      let found = capabilities(.all, version: version) { _, _ in }
      #expect(found.unicodeVersion == expected && found.joinedClusters == .all)
    }
    #expect(capabilities(.none) { _, _ in }.joinedClusters == [])
  }

  @Test("clusters of a kind are written whole if the measured clusters of that kind join into one character")
  func kinds() {
    let kinds: [CharacterWidth.Kinds] = [.emoji, .emoji, .emoji, .letters, .hangul]
    for separated in 0..<5 {
      let found = capabilities(.all) { answers, _ in
        let columns = [3, 3, 3] + (0..<5).map { $0 == separated ? 4 : 3 }
        answers = Array((columns.map { "\u{1B}[2;\($0)R" }.joined() + "\u{1B}[?62;22c").utf8)
      }
      #expect(found.joinedClusters == CharacterWidth.Kinds.all.subtracting(kinds[separated]))
    }
    let texts = ["👩\u{200D}🚀", "स्त्र", "\u{1100}\u{AC00}", "1\u{FE0F}\u{20E3}", "क्ष्म"]
    for (text, kind) in zip(texts, [.emoji, .letters, .hangul, .emoji, .letters] as [CharacterWidth.Kinds]) {
      var canvas = Canvas(size: Size(width: 20, height: 1))
      canvas.draw(text, at: .zero)
      for joined in [[], kind, CharacterWidth.Kinds.all.subtracting(kind)] as [CharacterWidth.Kinds] {
        var encoder = FrameEncoder(size: Size(width: 20, height: 1), capabilities: TerminalCapabilities())
        encoder.capabilities.joinedClusters = joined
        var bytes: ContiguousArray<UInt8> = []
        encoder.encode(canvas.grid, into: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self).contains(text) == (joined == kind), "\(text) \(joined.rawValue)")
      }
    }
  }

  @Test("without a reply, or with a late one, no character width is trusted")
  func noAnswer() {
    let none = capabilities(.all) { answers, _ in answers = Array("\u{1B}[?62;22c".utf8) }
    #expect(none.unicodeVersion == 12 && none.joinedClusters == [])
    let late = capabilities(.all) { _, session in session.endMeasuring() }
    #expect(late.unicodeVersion == 12 && late.joinedClusters == [])
    // Only some replies arrive.
    let some = capabilities(.all) { answers, _ in answers = Array("\u{1B}[2;3R\u{1B}[2;2R\u{1B}[?62;22c".utf8) }
    #expect(some.unicodeVersion == 13 && some.joinedClusters == [])
  }

  @Test("a character known to be two columns wide on the terminal needs no extra byte")
  func bytes() {
    var canvas = Canvas(size: Size(width: 20, height: 1))
    canvas.draw("🛜a", at: .zero)
    for (version, text) in [(12, "^[2X🛜^[3Ga"), (15, "🛜a")] {
      var screen = EncodedScreen(Size(width: 20, height: 1), .all)
      screen.encoder.capabilities.unicodeVersion = version
      #expect(screen.show(canvas.grid).contains(text) && screen.shows(canvas.grid))
    }
  }
}

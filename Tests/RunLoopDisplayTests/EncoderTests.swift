// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay
@testable import RunLoopDisplayTesting

/// An encoder whose output goes to an emulated screen.
struct EncodedScreen {
  var encoder: FrameEncoder
  var emulator: ScreenEmulator
  var bytes: ContiguousArray<UInt8> = []

  init(_ size: Size, _ features: HeadlessTerminal.Features) {
    var capabilities = TerminalCapabilities(environment: { features.environment[$0] })
    capabilities.synchronizes = features.synchronizes
    capabilities.knowsClusters = features.clusters
    capabilities.repeats = features.repeats
    capabilities.erasesWithColor = features.erasesWithColor
    capabilities.decorates = features.decorates
    encoder = FrameEncoder(size: size, capabilities: capabilities)
    emulator = ScreenEmulator(size: size, features: features)
  }

  /// Shows a frame, and returns what was written.
  @discardableResult
  mutating func show(_ grid: Grid, scrolls: [ScrollHint] = []) -> String {
    bytes.removeAll(keepingCapacity: true)
    let count = encoder.encode(grid, scrolls: scrolls, into: &bytes)
    #expect(count == bytes.count)
    emulator.write(bytes)
    return String(decoding: bytes, as: UTF8.self).replacing("\u{1B}", with: "^")
  }

  /// Returns where the screen visibly differs from a frame, or nil if it does not.
  func mismatch(_ grid: Grid, columns: Range<Int>? = nil) -> String? {
    for y in 0..<grid.size.height {
      for x in columns ?? 0..<grid.size.width {
        let wanted = grid[x, y]
        let style = encoder.capabilities.reduced(wanted.style)
        let cell = Cell(glyph: wanted.glyph, width: wanted.width, style: style)
        let found = emulator.grid[x, y]
        let isSame = cell.width == 0 ? found.width == 0 : Cell.looksSame(cell, found)
        if !isSame {
          return "\(x), \(y): \(cell) is \(found), after \(String(decoding: bytes, as: UTF8.self).debugDescription)"
        }
      }
    }
    return nil
  }

  func shows(_ grid: Grid) -> Bool { mismatch(grid) == nil }
}

@Suite("Encoder of frames")
struct EncoderTests {
  static let plain = HeadlessTerminal.Features(
    synchronizes: false, clusters: false, repeats: false, erasesWithColor: false, keyboard: false,
    environment: ["TERM": "xterm", "COLORTERM": "truecolor"])

  @Test("the first frame clears the screen, and the same frame again writes nothing")
  func first() {
    var screen = EncodedScreen(Size(width: 10, height: 3), Self.plain)
    var canvas = Canvas(size: Size(width: 10, height: 3))
    canvas.draw("hello", at: Point(x: 0, y: 1))
    #expect(screen.show(canvas.grid) == "^[m^[r^[H^[2J\nhello")
    #expect(screen.show(canvas.grid) == "")
    // An invisible change.
    canvas.fill(Rect(x: 7, y: 2, width: 2, height: 1), " ", style: Style(foreground: .red, attributes: .bold))
    #expect(screen.show(canvas.grid) == "")
    screen.encoder.repaint()
    #expect(screen.show(canvas.grid) == "^[m^[r^[H^[2J\nhello")
    #expect(screen.emulator.errors == [])
  }

  @Test(
    "small changes to a frame take few bytes",
    arguments: [
      ("12:00:00", "12:00:01", "\u{8}1"), ("abcdefgh", "abXdefYh", "\rabXdefY"), ("abcdefgh", "abcdefg", "\u{8} "),
      ("abcdefgh", "", "\r^[K"), ("abcdefgh", "Xbcdefgh", "\rX"),
    ])
  func small(_ before: String, _ after: String, _ bytes: String) {
    var screen = EncodedScreen(Size(width: 20, height: 2), Self.plain)
    var canvas = Canvas(size: Size(width: 20, height: 2))
    canvas.draw(before, at: .zero)
    screen.show(canvas.grid)
    canvas.fill(canvas.visibleRect)
    canvas.draw(after, at: .zero)
    #expect(screen.show(canvas.grid) == bytes)
    #expect(screen.shows(canvas.grid))
    #expect(screen.emulator.errors == [])
  }

  @Test("frames with changes are synchronised where the terminal granted that")
  func synchronised() {
    var features = Self.plain
    features.synchronizes = true
    var screen = EncodedScreen(Size(width: 4, height: 1), features)
    var canvas = Canvas(size: Size(width: 4, height: 1))
    screen.show(canvas.grid)
    canvas.draw("x", at: .zero)
    #expect(screen.show(canvas.grid) == "^[?2026hx^[?2026l")
    #expect(screen.show(canvas.grid) == "")
  }

  @Test(
    "colours are reduced to those that the terminal has",
    arguments: [
      (TerminalCapabilities.Colors.rgb, "^[38;2;255;0;0;44mx"), (.palette256, "^[38;5;196;44mx"),
      (.ansi16, "^[91;44mx"),
      (.none, "x"),
    ])
  func colors(_ colors: TerminalCapabilities.Colors, _ bytes: String) {
    var encoder = FrameEncoder(size: Size(width: 2, height: 1), capabilities: TerminalCapabilities(colors: colors))
    var output: ContiguousArray<UInt8> = []
    encoder.encode(Grid(size: Size(width: 2, height: 1)), into: &output)
    output = []
    var canvas = Canvas(size: Size(width: 2, height: 1))
    canvas.draw("x", at: .zero, style: Style(foreground: .rgb(255, 0, 0), background: .blue))
    encoder.encode(canvas.grid, into: &output)
    #expect(String(decoding: output, as: UTF8.self).replacing("\u{1B}", with: "^") == bytes)
  }

  @Test("the environment determines which colours a terminal has")
  func environment() {
    func colors(_ values: [String: String]) -> TerminalCapabilities.Colors {
      TerminalCapabilities(environment: { values[$0] }).colors
    }
    #expect(colors(["TERM": "xterm"]) == .ansi16)
    #expect(colors(["TERM": "linux"]) == .ansi16)
    #expect(colors(["TERM": "tmux-256color"]) == .palette256)
    #expect(colors(["TERM": "xterm", "COLORTERM": "truecolor"]) == .rgb)
    #expect(colors(["TERM": "xterm-kitty"]) == .rgb)
    #expect(colors(["TERM": "vt100"]) == .none)
    #expect(colors(["TERM": "xterm-kitty", "NO_COLOR": "1"]) == .none)
    #expect(colors(["TERM": "xterm-256color", "NO_COLOR": ""]) == .palette256)
  }

  @Test("a terminal without cluster support is sent text that takes as many cells there")
  func legacyClusters() {
    var screen = EncodedScreen(Size(width: 12, height: 1), Self.plain)
    var canvas = Canvas(size: Size(width: 12, height: 1))
    canvas.draw("👨‍👩‍👧|❤\u{FE0F}|👍🏽|e\u{301}|", at: .zero)
    screen.show(canvas.grid)
    #expect(screen.emulator.grid.text(row: 0) == "👨|❤ |👍|e\u{301}|")
    #expect(screen.emulator.errors == [])
  }

  @Test("a scroll hint becomes a scroll where that saves bytes, and never changes the picture")
  func scroll() {
    let size = Size(width: 30, height: 8)
    func lines(_ first: Int) -> Grid {
      var canvas = Canvas(size: size)
      canvas.draw("title", at: .zero)
      for row in 0..<6 {
        let text = String(repeating: String("abcdefghij".dropFirst((first + row) % 10).first!), count: 20)
        canvas.draw("\(first + row) \(text)", at: Point(x: 0, y: row + 1))
      }
      canvas.draw("status", at: Point(x: 0, y: 7))
      return canvas.grid
    }
    var screen = EncodedScreen(size, Self.plain)
    screen.show(lines(100))
    let area = Rect(x: 0, y: 1, width: 30, height: 6)
    let down = screen.show(lines(101), scrolls: [ScrollHint(area: area, rows: 1)])
    #expect(down == "^[2;7r^[S^[r^[7H106 gggggggggggggggggggg")
    #expect(screen.shows(lines(101)))
    let up = screen.show(lines(99), scrolls: [ScrollHint(area: area, rows: -2)])
    #expect(up.hasPrefix("^[2;7r^[2T^[r"))
    #expect(screen.shows(lines(99)))
    // A wrong hint costs nothing and does no harm.
    let wrong = screen.show(lines(100), scrolls: [ScrollHint(area: area, rows: -5), ScrollHint(area: area, rows: 99)])
    #expect(!wrong.contains("r"), "\(wrong)")
    #expect(screen.shows(lines(100)))
    #expect(screen.emulator.errors == [])
  }

  @Test("a grid of another size is shown as far as it fits, and the rest stays blank")
  func otherSize() {
    var screen = EncodedScreen(Size(width: 4, height: 2), Self.plain)
    var large = Canvas(size: Size(width: 9, height: 5))
    large.fill(large.visibleRect, "x")
    large.draw("世", at: Point(x: 3, y: 0))
    screen.show(large.grid)
    #expect(screen.emulator.grid.text(row: 0) == "xxx")
    #expect(screen.emulator.grid.text(row: 1) == "xxxx")
    screen.show(Grid(size: Size(width: 2, height: 1)))
    #expect(screen.emulator.grid == Grid(size: Size(width: 4, height: 2)))
    screen.show(Grid(size: .zero))
    #expect(screen.emulator.errors == [])
  }

  @Test("random frames are shown correctly, whatever the terminal supports", arguments: 0..<64)
  func random(_ seed: Int) {
    var random = SplitMix64(seed: UInt64(seed))
    let features = HeadlessTerminal.Features(
      synchronizes: random.oneIn(2), clusters: random.oneIn(2), repeats: random.oneIn(2),
      erasesWithColor: random.oneIn(2), keyboard: false,
      environment: [
        "TERM": ["xterm", "xterm-256color", "vt220", "linux"][random.below(4)],
        "COLORTERM": ["", "truecolor"][random.below(2)],
      ])
    let size = Size(width: 1 + random.below(seed < 8 ? 3 : 60), height: 1 + random.below(seed < 8 ? 3 : 20))
    var screen = EncodedScreen(size, features)
    var drawing = RandomDrawing(size: size, clusters: features.clusters)
    for frame in 0..<60 {
      let scrolls = drawing.change(&random)
      screen.show(drawing.canvas.grid, scrolls: scrolls)
      let mismatch = screen.mismatch(drawing.canvas.grid)
      let errors = screen.emulator.errors
      #expect(
        mismatch == nil && errors == [],
        "seed \(seed), frame \(frame), \(size), \(features): \(errors) \(mismatch ?? "")")
      if mismatch != nil || !errors.isEmpty { return }
      #expect(screen.show(drawing.canvas.grid) == "")
    }
  }
}

struct RandomDrawing {
  var canvas: Canvas
  let clusters: Bool

  init(size: Size, clusters: Bool) {
    canvas = Canvas(size: size)
    self.clusters = clusters
  }

  private static let texts = ["hello", "世界", "    ", "----------", "a b c", "é漢x", "ｱＡ", "e\u{301}t\u{302}", "🙂"]
  private static let clusterTexts = ["👨‍👩‍👧", "🇩🇪🇫🇷", "❤\u{FE0F}❤", "👍🏽👍", "🏽", "कि", "क्ष", "🇩", "1\u{FE0F}\u{20E3}", "ᄀ가", "ᄀ"]

  mutating func change(_ random: inout SplitMix64) -> [ScrollHint] {
    let size = canvas.grid.size
    var hints: [ScrollHint] = []
    func place(_ random: inout SplitMix64) -> Point {
      Point(x: random.below(size.width + 4) - 2, y: random.below(size.height))
    }
    for _ in 0..<random.below(6) {
      let style = Self.style(&random)
      let texts = clusters ? Self.texts + Self.clusterTexts : Self.texts
      switch random.below(8) {
      case 0:
        let rect = Rect(
          origin: place(&random), size: Size(width: 1 + random.below(size.width), height: 1 + random.below(3)))
        canvas.fill(rect, [" ", " ", "x", "世", "─"][random.below(5)], style: style)
      case 1: canvas.fill(canvas.visibleRect, " ", style: random.oneIn(2) ? .plain : style)
      case 2:
        let rows = random.below(size.height * 2 + 1) - size.height
        let top = random.below(size.height)
        let height = 1 + random.below(size.height - top)
        let old = canvas.grid
        canvas.within(Rect(x: 0, y: top, width: size.width, height: height)) { inner in
          for y in 0..<height where y + rows >= 0 && y + rows < height {
            var row = Canvas(size: Size(width: size.width, height: 1))
            row.draw(old, at: Point(x: 0, y: -(top + y + rows)))
            inner.draw(row.grid, at: Point(x: 0, y: y))
          }
        }
        hints.append(ScrollHint(area: Rect(x: 0, y: top, width: size.width, height: height), rows: rows))
      default: canvas.draw(texts[random.below(texts.count)], at: place(&random), style: style)
      }
    }
    return hints
  }

  private static func style(_ random: inout SplitMix64) -> Style {
    func color(_ random: inout SplitMix64) -> Color {
      switch random.below(5) {
      case 0: .palette(UInt8(random.below(16)))
      case 1: .palette(UInt8(random.below(256)))
      case 2: .rgb(UInt8(random.below(256)), UInt8(random.below(256)), UInt8(random.below(256)))
      default: .default
      }
    }
    return Style(
      foreground: color(&random), background: color(&random),
      attributes: random.oneIn(2) ? [] : Style.Attributes(rawValue: UInt8(random.below(64))))
  }
}

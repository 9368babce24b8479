// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopDisplay

@Suite("Characters in cells")
struct CellTests {
  @Test(
    "a character takes as many cells as terminals give it",
    arguments: [
      ("a", 1), ("ä", 1), ("a\u{308}", 1), ("世", 2), ("한", 2), ("\u{1112}\u{1161}\u{11AB}", 2), ("…", 1), ("α", 1),
      ("│", 1),
      ("⌚", 2), ("❤", 1), ("❤\u{FE0F}", 2), ("👍", 2), ("👍🏽", 2), ("👨‍👩‍👧", 2), ("🇩🇪", 2), ("1\u{FE0F}\u{20E3}", 2),
      ("Ａ", 2), ("ｱ", 1), ("\u{AD}", 1), ("ก็", 1), ("🏳\u{FE0F}\u{200D}🌈", 2), ("कि", 2),
    ])
  func widths(_ text: String, _ width: UInt8) {
    #expect(text.count == 1)
    let cell = Cell(Character(text))
    #expect(cell.width == width, "\(text)")
    #expect(cell.character == Character(text))
  }

  @Test(
    "a character without width is shown as the replacement character",
    arguments: [
      "\u{0}", "\u{1B}", "\t", "\n", "\r\n", "\u{7F}", "\u{9B}", "\u{308}", "\u{200B}", "\u{202E}", "\u{2028}",
      "\u{93F}",
    ])
  func replaced(_ text: String) {
    let cell = Cell(Character(text))
    #expect(cell.character == "\u{FFFD}")
    #expect(cell.width == 1)
  }

  @Test("a grapheme cluster keeps one number, however often it appears")
  func clusters() {
    #expect(Cell("e\u{323}\u{301}") == Cell("e\u{323}\u{301}"))
    #expect(Cell("👨‍👩‍👧") != Cell("👨‍👩‍👦"))
  }

  @Test("many clusters, even more than any text contains, are shown whole")
  func manyClusters() {
    let marks = (0x300...0x36F).compactMap { Unicode.Scalar($0).map(Character.init) }
    var canvas = Canvas(size: Size(width: 4, height: 1))
    for first in marks {
      for second in marks {
        for letter in ["a", "b", "c", "d"] { canvas.draw("\(letter)\(first)\(second)", at: .zero) }
      }
    }
    canvas.draw("q\u{301}👩‍👩‍👦", at: .zero)
    #expect(canvas.grid.text(row: 0) == "q\u{301}👩‍👩‍👦")
  }

  @Test("there are as many clusters as cells can refer to")
  func everyNumber() {
    let last = Glyphs.firstCluster + UInt32(ClusterTable.shared.capacity) - 1
    #expect(Cell(glyph: last, width: 2, style: .plain).glyph == 0xFF_FFFF)
  }

  @Test("a full cluster table and an overlong cluster fall back to the first scalar")
  func tableIsBounded() throws {
    let table = ClusterTable(capacity: 2)
    let cluster = CharacterWidth.Cluster(kind: .letters, width: 1, isSumOfScalars: true, isCertain: true)
    #expect(table.glyph(of: ("a\u{301}\u{302}" as Substring).unicodeScalars, cluster) == Glyphs.firstCluster)
    #expect(table.glyph(of: ("b\u{301}\u{302}" as Substring).unicodeScalars, cluster) == Glyphs.firstCluster + 1)
    #expect(table.glyph(of: ("c\u{301}\u{302}" as Substring).unicodeScalars, cluster) == nil)
    #expect(table.glyph(of: ("a\u{301}\u{302}" as Substring).unicodeScalars, cluster) == Glyphs.firstCluster)
    let long = Character("z" + String(repeating: "\u{301}", count: 1000))
    #expect(Cell(long).character == "z")
  }

  @Test("text drawn over half of a wide character leaves a blank for the other half")
  func halves() {
    var canvas = Canvas(size: Size(width: 6, height: 1))
    canvas.draw("世界人", at: .zero)
    #expect(canvas.grid.text(row: 0) == "世界人")
    canvas.draw("a", at: Point(x: 1, y: 0))
    #expect(canvas.grid.text(row: 0) == " a界人")
    canvas.draw("b", at: Point(x: 2, y: 0))
    #expect(canvas.grid.text(row: 0) == " ab 人")
    canvas.draw("中", at: Point(x: 3, y: 0))
    #expect(canvas.grid.text(row: 0) == " ab中")
  }

  @Test("a wide character that is half clipped becomes a blank")
  func clipped() {
    var canvas = Canvas(size: Size(width: 4, height: 1))
    canvas.fill(canvas.visibleRect, ".")
    canvas.within(Rect(x: 1, y: 0, width: 2, height: 1)) { inner in
      #expect(inner.visibleRect == Rect(x: 0, y: 0, width: 2, height: 1))
      inner.draw("世界", at: Point(x: -1, y: 0))
    }
    #expect(canvas.grid.text(row: 0) == ".  .")
    #expect(canvas.grid[1, 0].width == 1 && canvas.grid[2, 0].width == 1)
    var other = Canvas(size: Size(width: 2, height: 1))
    other.draw("世", at: .zero)
    canvas.draw(other.grid, at: Point(x: -1, y: 0))
    #expect(canvas.grid.text(row: 0) == "   .")
    canvas.fill(Rect(x: 0, y: 0, width: 3, height: 1), "世")
    #expect(canvas.grid.text(row: 0) == "世 .")
  }

  @Test("text far outside the grid, and rectangles without cells, draw nothing")
  func outside() {
    var canvas = Canvas(size: Size(width: 3, height: 2))
    let blank = canvas.grid
    #expect(canvas.draw("abc", at: Point(x: -3, y: 0)) == 0)
    #expect(canvas.draw("世界", at: Point(x: 3, y: 1)) == 7)
    canvas.draw("abc", at: Point(x: 0, y: -1))
    canvas.draw("äbc", at: Point(x: 0, y: 2))
    canvas.fill(Rect(x: 1, y: 1, width: 0, height: 5), "x")
    canvas.within(Rect(x: 5, y: 5, width: 4, height: 4)) { _ = $0.draw("abc", at: .zero) }
    canvas.draw(Grid(size: Size(width: 9, height: 9)), at: Point(x: -20, y: 0))
    #expect(canvas.grid == blank)
    #expect(Grid(size: Size(width: -1, height: 4)).size == Size(width: 0, height: 4))
  }

  @Test(
    "drawing a text produces the same cells as drawing its characters one by one",
    arguments: ["plain", "é世 ok", "a\r\nb", "x\u{301}", "tab\tend"])
  func textIsCharacters(_ text: String) {
    var canvas = Canvas(size: Size(width: 12, height: 1))
    let end = canvas.draw(text, at: Point(x: 1, y: 0), style: .reversed)
    var x = 1
    for character in text {
      let cell = Cell(character, style: .reversed)
      #expect(canvas.grid[x, 0] == cell)
      x += Int(cell.width)
    }
    #expect(end == x)
    var other = Canvas(size: Size(width: 12, height: 1))
    other.draw(text[...], at: Point(x: 1, y: 0), style: .reversed)
    #expect(other.grid == canvas.grid)
  }
}

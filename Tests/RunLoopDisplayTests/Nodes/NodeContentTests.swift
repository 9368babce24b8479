// SPDX-License-Identifier: Apache-2.0

import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Contents of nodes")
struct NodeContentTests {
  /// The rows of content drawn at a size; a dot is an undrawn cell.
  private func rows(_ content: some NodeContent, _ width: Int, _ height: Int) -> [String] {
    let drawing = NodeDrawing.make(
      content, size: Size(width: width, height: height), placesSubnodes: false, Cancellation())
    return (0..<height).map { y in
      (0..<width).map { x in
        let cell = drawing.grid[x, y]
        return cell.isClear ? "." : cell.character.map(String.init) ?? ""
      }.joined()
    }
  }

  private func size(_ content: some NodeContent, _ range: SizeRange) -> [Int] {
    let size = content.layoutWithin(range).size
    return [size.width, size.height]
  }

  private func atMost(_ width: Int, _ height: Int = SizeRange.unlimited) -> SizeRange {
    SizeRange(max: Size(width: width, height: height))
  }

  @Test(
    "a text breaks at line ends, spaces and wide characters, and inside words that are too long",
    arguments: [
      ("", 5, []),
      ("one two three", 7, ["one two", "three"]),
      ("one two three", 3, ["one", "two", "thr", "ee"]),
      ("one    two", 5, ["one", "two"]),
      ("ab cd", 2, ["ab", "cd"]),
      ("ab  ", 2, ["ab"]),
      ("a\nb\r\nc\n", 5, ["a", "b", "c", ""]),
      ("日本語", 4, ["日本", "語"]),
      ("日本語", 5, ["日本", "語"]),
      ("ab日本", 3, ["ab", "日", "本"]),
      ("日本", 1, ["日", "本"]),
      ("word 日本", 7, ["word 日", "本"]),
      ("any", 0, []),
    ])
  func lines(text: String, width: Int, expected: [String]) {
    let lines = TextLines(text, width: width).lines
    #expect(lines.map { String($0.text) } == expected)
    #expect(lines.allSatisfy { $0.width <= max(width, 0) })
  }

  @Test("random texts lose only spaces when broken, and no line is too wide")
  func randomLines() {
    var random = SplitMix64(seed: 7)
    for _ in 0..<500 {
      let text = String(
        (0..<Int.random(in: 0...40, using: &random)).map { _ in "ab  日é\n-".randomElement(using: &random)! })
      let width = Int.random(in: 2...9, using: &random)
      let lines = TextLines(text, width: width).lines
      #expect(lines.flatMap(\.text).filter { $0 != " " } == text.filter { $0 != " " && $0 != "\n" }, "\(text) \(width)")
      for line in lines {
        #expect(line.width <= width && line.text.reduce(0) { $0 + TextLines.width(of: $1) } == line.width)
      }
    }
  }

  @Test("a text measures as large as its lines, within the size range")
  func textSize() {
    let text = TextContent("one two three")
    #expect(size(text, SizeRange()) == [13, 1])
    #expect(size(text, atMost(7)) == [7, 2])
    #expect(size(text, atMost(7, 1)) == [7, 1])
    #expect(size(text, SizeRange(min: Size(width: 20, height: 3))) == [20, 3])
    #expect(size(TextContent("one two three", lineLimit: 2), atMost(3)) == [3, 2])
  }

  @Test("a text is drawn on its side, and truncated with an ellipsis if it does not fit")
  func text() {
    #expect(rows(TextContent("ab cd"), 3, 3) == ["ab.", "cd.", "..."])
    #expect(rows(TextContent("ab", alignment: .right), 4, 1) == ["..ab"])
    #expect(rows(TextContent("ab", alignment: .center), 5, 1) == [".ab.."])
    #expect(rows(TextContent("one two"), 5, 1) == ["one…."])
    #expect(rows(TextContent("three two"), 5, 1) == ["thre…"])
    #expect(rows(TextContent("日本語"), 4, 1) == ["日…."])
    #expect(rows(TextContent("a", style: Style(background: .blue)), 3, 1) == ["a  "])
  }

  @Test("a stack hands out room along its axis to its children in order")
  func stack() {
    let letters: [any NodeContent] = [TextContent("ab"), TextContent("c"), TextContent("def")]
    #expect(size(StackContent(.horizontal, letters), SizeRange()) == [6, 1])
    #expect(size(StackContent(.vertical, spacing: 1, letters), SizeRange()) == [3, 5])
    #expect(rows(StackContent(.horizontal, spacing: 1, letters), 9, 1) == ["ab.c.def."])
    #expect(rows(StackContent(.vertical, alignment: .end, letters), 4, 3) == ["..ab", "...c", ".def"])
    #expect(rows(StackContent(.vertical, alignment: .center, letters), 4, 3) == [".ab.", ".c..", "def."])
    // Children that do not fit are left out.
    #expect(rows(StackContent(.horizontal, letters), 3, 1) == ["abc"])
  }

  @Test("flexible children of a stack share the remaining room")
  func flexible() {
    let stack = StackContent(.horizontal, [TextContent("a"), FlexibleContent(FillContent("-")), TextContent("b")])
    #expect(rows(stack, 6, 1) == ["a----b"])
    #expect(size(stack, SizeRange()) == [2, 1])
    let three = StackContent(
      .horizontal,
      [FlexibleContent(FillContent("1")), FlexibleContent(FillContent("2")), FlexibleContent(FillContent("3"))])
    #expect(rows(three, 8, 1) == ["11222333"])
    #expect(
      rows(StackContent(.vertical, [TextContent("t"), FlexibleContent(FillContent("="))]), 2, 3) == ["t.", "==", "=="])
  }

  @Test("insets stay empty, and content that does not fit inside them is left out")
  func insets() {
    let content = InsetContent(Insets(top: 1, left: 2, bottom: 0, right: 1), TextContent("ab"))
    #expect(size(content, SizeRange()) == [5, 2])
    #expect(rows(content, 5, 2) == [".....", "..ab."])
    #expect(rows(content, 4, 2) == ["....", "..…."])
    #expect(rows(content, 2, 1) == [".."])
    #expect(size(InsetContent(Insets(.max), TextContent("ab")), atMost(3, 3)) == [3, 3])
    #expect(size(InsetContent(Insets(-5), TextContent("ab")), SizeRange()) == [2, 1])
  }

  @Test("partly visible content is drawn as a whole")
  func overflow() {
    let wide = DrawnContent(size: Size(width: 4, height: 1)) { canvas, _ in
      canvas.draw("abcd", at: .zero)
      #expect(canvas.visibleRect == Rect(x: 0, y: 0, width: 4, height: 1))
    }
    var canvas = Canvas(grid: .clear(size: Size(width: 3, height: 1)))
    wide.draw(in: Rect(x: 1, y: 0, width: 4, height: 1), of: &canvas, Cancellation())
    #expect((0..<3).map { canvas.grid[$0, 0].character } == [nil, "a", "b"])
  }

  @Test("a size range has no negative sizes, and none that overflow when added")
  func ranges() {
    let range = SizeRange(min: Size(width: -1, height: 5), max: Size(width: .max, height: 2))
    #expect(range.min == Size(width: 0, height: 5) && range.max == Size(width: SizeRange.unlimited, height: 5))
    #expect(range.clamp(Size(width: .max, height: .min)) == Size(width: SizeRange.unlimited, height: 5))
    #expect(range.contains(Size(width: 3, height: 5)) && !range.contains(Size(width: 3, height: 6)))
  }

  @Test("content without a layout takes all the room it is offered")
  func defaultLayout() {
    #expect(size(FillContent(), atMost(7, 3)) == [7, 3])
    #expect(size(FillContent(), SizeRange(min: Size(width: 2, height: 1))) == [2, 1])
    #expect(size(DrawnContent(size: Size(width: 9, height: 9)) { _, _ in }, atMost(7, 3)) == [7, 3])
  }

  @Test("subnodes are placed where their contents stand, nested ones too")
  func subnodes() {
    let (title, text) = (DisplayNode(TextContent("title")), DisplayNode(TextContent("some text")))
    let content = InsetContent(
      Insets(1), StackContent(.vertical, spacing: 1, alignment: .start, [SubnodeContent(title), SubnodeContent(text)]))
    let layout = content.layoutWithin(SizeRange(max: Size(width: 8, height: 20)))
    #expect(layout.size == Size(width: 7, height: 6))
    #expect(layout.frames == [Rect(x: 1, y: 1, width: 5, height: 1), Rect(x: 1, y: 3, width: 4, height: 2)])
  }
}

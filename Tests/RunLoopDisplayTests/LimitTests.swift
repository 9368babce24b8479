// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Coordinates that are as large as can be, and cells that are not there")
@MainActor
struct LimitTests {
  private nonisolated static let numbers = [Int.min, Int.min + 1, -1, 0, 1, Int.max - 1, Int.max]

  @Test("rectangles of any coordinates can be moved, intersected and joined", arguments: numbers, numbers)
  func rectangles(origin: Int, side: Int) {
    let rect = Rect(x: origin, y: origin, width: side, height: side)
    let screen = Rect(x: 0, y: 0, width: 80, height: 24)
    #expect(screen.contains(Point(x: origin, y: origin)) == (0..<24).contains(origin))
    #expect(!rect.contains(Point(x: .min, y: .max)))
    let seen = rect.intersection(screen)
    #expect(seen.isEmpty || screen.intersection(seen) == seen)
    #expect(seen == screen.intersection(rect) || seen.isEmpty)
    _ = rect.union(screen).offset(by: Point(x: side, y: origin)).maxX
    #expect(Layout(size: .zero, frames: [rect]).frames(at: Point(x: origin, y: side)).count == 1)
  }

  @Test("drawing at any coordinates draws the visible part", arguments: numbers, numbers)
  func drawing(x: Int, y: Int) {
    var canvas = Canvas(size: Size(width: 4, height: 2))
    let rect = Rect(x: x, y: y, width: .max, height: .max)
    canvas.fill(rect, "x")
    let isSeen = (Int.min + 1..<4).contains(x) && (Int.min + 1..<2).contains(y)
    #expect(canvas.grid[3, 1].character == (isSeen && x >= -1 && y >= -1 ? "x" : canvas.grid[3, 1].character))
    canvas.draw("text 世界", at: Point(x: x, y: y))
    canvas.draw("ascii", at: Point(x: x, y: y))
    canvas.draw(Grid(size: Size(width: 2, height: 2)), at: Point(x: x, y: y))
    canvas.within(rect) { inner in
      inner.within(rect) { _ = $0.draw("inner", at: Point(x: x, y: y)) }
      _ = inner.visibleRect
    }
    let view = View(frame: Rect(x: 1, y: 1, width: 1, height: 1))
    View().addSubview(view)
    _ = view.convert(view.convert(Point(x: x, y: y), to: nil), from: nil)
    #expect(Point(x: x, y: y).distance(to: Point(x: y, y: x)) >= 0)
  }

  @Test("contents of any size, and rows of any number, can be scrolled to as far as they exist")
  func scrolling() {
    let list = ListView { _, row in row ?? ListRow() }
    list.rowCount = 100
    for number in Self.numbers {
      list.scrollToRow(number)
      #expect((0..<100).contains(list.contentOffset.y) || list.contentOffset.y == 100)
    }
    list.frame = Rect(x: 0, y: 0, width: 10, height: 5)
    list.scrollToRow(.max)
    #expect(list.contentOffset == Point(x: 0, y: 95))
    let view = ScrollView(frame: Rect(x: 0, y: 0, width: 10, height: 5))
    for width in Self.numbers {
      for height in Self.numbers {
        view.contentSize = Size(width: width, height: height)
        view.contentOffset = Point(x: .max, y: .max)
        view.layoutIfNeeded()
        view.contentOffset.y -= 1
        #expect(view.contentOffset.x >= 0 && view.contentOffset.y >= 0)
      }
    }
  }

  /// A view that always needs the same size.
  private final class Sized: View {
    let size: Size
    init(_ size: Size) {
      self.size = size
      super.init(frame: .zero)
    }
    override func sizeThatFits(_ room: Size) -> Size { size }
  }

  @Test("views of any size are arranged with any spacings and margins", arguments: numbers, numbers)
  func arrangement(number: Int, side: Int) {
    let size = Size(width: side, height: side)
    for room in [Size(width: 9, height: 5), Size(width: number, height: side), Size(width: side, height: number)] {
      let frame = Rect(origin: .zero, size: room)
      let grid = GridView(columnSpacing: number, rowSpacing: number, frame: frame)
      grid.layoutMargins = Insets(number)
      grid.flexibleColumns = [number, 2]
      for row in 0..<3 { grid.addRow(with: (0..<3).map { _ in Sized(size) }, isFlexible: row == 1) }
      let stacks = [StackView.Axis.horizontal, .vertical].map { axis in
        let stack = StackView(axis, spacing: number, frame: frame)
        stack.layoutMargins = Insets(top: number, left: side)
        for place in 0..<3 { stack.addArrangedSubview(Sized(size), isFlexible: place == 1) }
        return stack
      }
      let box = BoxView("title", content: Sized(size), frame: frame)
      box.padding = Insets(number)
      for view in [grid, box] + stacks {
        view.layoutIfNeeded()
        let needed = view.sizeThatFits(room)
        #expect(needed.width >= 0 && needed.height >= 0)
      }
      let label = Label("a b")
      label.lineBreakMode = .wordWrapping
      _ = label.sizeThatFits(room)
    }
    let drawn = DrawnContent(size: size) { _, _ in }
    let children: [any NodeContent] = [
      InsetContent(Insets(number), TextContent("a", lineLimit: side)), FlexibleContent(drawn),
      InsetContent(Insets(1), drawn),
    ]
    let stack = StackContent(.horizontal, spacing: number, children)
    for range in [SizeRange(), SizeRange(min: size, max: Size(width: number, height: number))] {
      #expect(range.contains(stack.layout(range).size))
    }
  }

  @Test("lists accept rows of any number and height, and columns of any width", arguments: numbers, numbers)
  func rows(number: Int, other: Int) {
    for hasHeights in [false, true] {
      let list = ListView(frame: Rect(x: 0, y: 0, width: 10, height: 5)) { _, row in row ?? ListRow() }
      if hasHeights { list.heightForRow = { _ in other } }
      list.columns = [ListColumn("a", width: number), ListColumn("b"), ListColumn("c", width: other)]
      list.rowCount = 10
      list.contentSize.width = number
      list.layoutIfNeeded()
      list.moveRow(at: number, to: other)
      list.moveRow(at: 3, to: number)
      list.deleteRows(at: min(number, other)..<max(number, other))
      if list.rowCount < 100, !hasHeights {
        let count = list.rowCount
        list.insertRows(at: min(number, other)..<max(number, other))
        #expect(list.rowCount >= count && list.rowCount <= ListView.maximumCount)
      }
      list.selectedRow = number
      _ = list.visibleRow(number)
      list.scrollRectToVisible(Rect(x: number, y: other, width: other, height: number))
      list.layoutIfNeeded()
    }
  }

  @Test("scrolls by any number of rows, and keys and positions of any number, do not trap")
  func devices() throws {
    var encoder = FrameEncoder(size: Size(width: 4, height: 3), capabilities: TerminalCapabilities())
    var bytes: ContiguousArray<UInt8> = []
    try VirtualTime.asMain { _ in
      let terminal = HeadlessTerminal(size: Size(width: 4, height: 3))
      try terminal.open()
      for number in Self.numbers {
        var canvas = Canvas(size: Size(width: 4, height: 3))
        for row in 0..<3 { canvas.draw("\(number % 100 + row)", at: Point(x: 0, y: row)) }
        let area = Rect(x: 0, y: 0, width: 4, height: 3)
        encoder.encode(canvas.grid, scrolls: [ScrollHint(area: area, rows: number)], into: &bytes)
        terminal.mouse(.move, at: Point(x: number, y: number))
        terminal.press(.function(number))
        terminal.cursor = TextCursor(at: Point(x: number, y: number), shape: .bar)
        terminal.present(canvas.grid)
      }
      terminal.close()
    }
  }

  /// The message of a process that ended with an error.
  private func message(_ result: ExitTest.Result?) throws -> String {
    String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
  }

  @Test("a cell or row outside a grid is named in the message")
  func missing() async throws {
    let cell = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Grid(size: Size(width: 2, height: 3))[2, 0]
    }
    #expect(try message(cell).contains("the cell in column 2 of row 0 is not in a grid of 2 by 3 cells"))
    let row = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Grid(size: Size(width: 2, height: 3)).text(row: 7)
    }
    #expect(try message(row).contains("the row 7 is not in a grid of 2 by 3 cells"))
    let line = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await MainActor.run { _ = HeadlessTerminal(size: Size(width: 2, height: 3)).line(10) }
    }
    #expect(try message(line).contains("the row 10 is not in a grid of 2 by 3 cells"))
  }

  @Test("an oversized grid is named with its size and the limit", arguments: [1 << 20, Int.max])
  func tooLarge(side: Int) async throws {
    let result =
      switch side {
      case 1 << 20:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          LimitTests.makeGrid(side: 1 << 20)
        }
      default:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          LimitTests.makeGrid(side: .max)
        }
      }
    #expect(try message(result).contains("a grid of \(side) by \(side) cells is too large: it can have 67108864"))
  }

  nonisolated private static func makeGrid(side: Int) {
    _ = Grid(size: Size(width: side, height: side))
  }
}

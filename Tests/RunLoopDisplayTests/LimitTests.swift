// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplayTesting
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

  @Test("what is drawn at any coordinates is drawn as far as it is visible", arguments: numbers, numbers)
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

  @Test("contents of any size, and rows of any number, are scrolled to as far as there are any")
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

  /// What a process writes that ends with an error.
  private func message(_ result: ExitTest.Result?) throws -> String {
    String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
  }

  @Test("a cell or a row that a grid does not have is named")
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

  @Test("a grid that is too large is named with its size and the limit", arguments: [1 << 20, Int.max])
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

  /// Makes a square grid.
  nonisolated private static func makeGrid(side: Int) {
    _ = Grid(size: Size(width: side, height: side))
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// What was drawn of a node's content, with the frames of the subnodes that were laid out with it.
final class NodeDrawing: Sendable {
  let grid: Grid
  /// Nil: the subnodes were not laid out.
  let frames: [Rect]?

  init(grid: Grid, frames: [Rect]?) {
    self.grid = grid
    self.frames = frames
  }

  /// Whether a content of a size can be drawn; if it is too large, that is reported.
  static func canDraw(_ size: Size) -> Bool {
    let (count, isTooLarge) = max(0, size.width).multipliedReportingOverflow(by: max(0, size.height))
    guard isTooLarge || count > DisplayNode.maximumContent else { return true }
    Diagnostic.transaction.report(
      """
      a content of \(size.width) by \(size.height) cells was not drawn: a node can have \(DisplayNode.maximumContent) \
      cells
      """)
    return false
  }

  /// Lays a content out and draws it; one that is too large is left empty.
  ///
  /// Calls the user's code: on any thread, and under no lock.
  static func make(
    _ content: any NodeContent, size: Size, placesSubnodes: Bool, _ cancellation: Cancellation
  ) -> NodeDrawing {
    let frames = placesSubnodes ? content.layoutWithin(SizeRange(exactly: size)).frames : nil
    if content is EmptyContent || !canDraw(size) { return NodeDrawing(grid: Grid(size: .zero), frames: frames) }
    var canvas = Canvas(grid: .clear(size: size))
    if !cancellation.isCancelled { content.draw(into: &canvas, cancellation) }
    return NodeDrawing(grid: canvas.grid, frames: frames)
  }
}

extension Grid {
  /// Cells in which nothing was drawn: what lies below is seen there.
  static func clear(size: Size) -> Grid {
    var grid = Grid(size: size)
    for y in 0..<grid.size.height { for x in 0..<grid.size.width { grid[x, y] = .clear } }
    return grid
  }
}

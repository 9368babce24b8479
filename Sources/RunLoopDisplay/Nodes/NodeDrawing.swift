// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// A drawing of a node's content, with the frames of the subnodes that were laid out with it.
final class NodeDrawing: Sendable {
  let grid: Grid
  /// The frames, or nil if the subnodes were not laid out.
  let frames: [Rect]?

  init(grid: Grid, frames: [Rect]?) {
    self.grid = grid
    self.frames = frames
  }

  /// Returns whether a content of this size can be drawn, and reports a size that is too large.
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

  /// Lays out and draws a content, which is left empty if it is too large.
  ///
  /// Calls user code, and can be called from any thread. The caller must not hold a lock.
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
  /// Returns a grid of cells in which nothing was drawn, through which what is below is visible.
  static func clear(size: Size) -> Grid {
    var grid = Grid(size: size)
    for y in 0..<grid.size.height { for x in 0..<grid.size.width { grid[x, y] = .clear } }
    return grid
  }
}

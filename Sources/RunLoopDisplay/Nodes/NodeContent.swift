// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// The content of a node: a value that can lay itself out and draw itself on any thread.
///
/// Both methods are called on workers, and on the main thread if a node would otherwise be visible without content.
/// They are called without any locks, and may take a long time. They only have access to the value, so copy what they
/// need into it when you create it.
///
/// ```Swift
/// struct Bar: NodeContent {
///   var fraction: Double
///   func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
///     let width = Int(Double(canvas.visibleRect.size.width) * fraction)
///     canvas.fill(Rect(x: 0, y: 0, width: width, height: 1), "#")
///   }
/// }
/// node.content = Bar(fraction: 0.5)       // from any thread
/// ```
public protocol NodeContent: Sendable {
  /// Chooses a size and the frames of the node's subnodes.
  ///
  /// By default, the content is as large as possible, or as small as possible without a limit, and places no subnodes.
  ///
  /// - Parameter size: The range of sizes to choose from. A size outside the range is clamped to it.
  func layout(_ size: SizeRange) -> Layout

  /// Draws the content. The default implementation draws nothing.
  ///
  /// - Parameters:
  ///   - canvas: A canvas of blank cells, through which what is below is visible. Its ``Canvas/visibleRect`` begins at
  ///     (0, 0) and has the size of the node, or of the part of the node that the content occupies.
  ///   - cancellation: A token that reports whether the drawing is still needed. Long-running drawing code should
  ///     check it periodically and return early when it is set.
  func draw(into canvas: inout Canvas, _ cancellation: Cancellation)
}

extension NodeContent {
  /// Chooses the largest possible size, or the smallest where there is no limit.
  public func layout(_ size: SizeRange) -> Layout {
    Layout(
      size: Size(
        width: size.max.width == SizeRange.unlimited ? size.min.width : size.max.width,
        height: size.max.height == SizeRange.unlimited ? size.min.height : size.max.height))
  }

  /// Draws nothing.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {}

  func layoutWithin(_ range: SizeRange) -> Layout {
    var layout = layout(range)
    layout.size = range.clamp(layout.size)
    return layout
  }

  /// Draws the content in a part of a canvas.
  func draw(in frame: Rect, of canvas: inout Canvas, _ cancellation: Cancellation) {
    guard !frame.isEmpty, !cancellation.isCancelled else { return }
    if canvas.visibleRect.intersection(frame) == frame {
      canvas.within(frame) { draw(into: &$0, cancellation) }
    } else if !canvas.visibleRect.intersection(frame).isEmpty, NodeDrawing.canDraw(frame.size) {
      // The content draws in its full size, even if only part of it is visible.
      var whole = Canvas(size: frame.size)
      draw(into: &whole, cancellation)
      canvas.draw(whole.grid, at: frame.origin)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// The content of a node: a value that can lay itself out and draw itself, on any thread.
///
/// Both functions are called on workers, and on the main thread if a node would otherwise be visible without content.
/// They are called under no lock, may take long, and see only the value: copy what they need into it when it is made.
///
/// ```Swift
/// struct Bar: NodeContent {
///   var fraction: Double
///   func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
///     let width = Int(Double(canvas.visibleRect.size.width) * fraction)
///     canvas.fill(Rect(x: 0, y: 0, width: width, height: 1), "#")
///   }
/// }
/// node.content = Bar(fraction: 0.5)       // any thread
/// ```
public protocol NodeContent: Sendable {
  /// Chooses a size, and the frames of the node's subnodes.
  ///
  /// If it is not implemented, the content is as large as it may be, and as small where there is no limit; it places no
  /// subnodes.
  ///
  /// - Parameter size: The sizes to choose from. A size outside of it is replaced by the nearest one within.
  func layout(_ size: SizeRange) -> Layout

  /// Draws the content.
  ///
  /// If it is not implemented, nothing is drawn.
  ///
  /// - Parameters:
  ///   - canvas: Blank cells, which let be seen what lies below. Their ``Canvas/visibleRect`` begins at (0, 0) and has
  ///     the size of the node, or of the part of it that the content is given.
  ///   - cancellation: Whether the drawing is still wanted. One that takes long looks at it now and then, and returns
  ///     early when it is set.
  func draw(into canvas: inout Canvas, _ cancellation: Cancellation)
}

extension NodeContent {
  /// As large as the content may be, and as small as possible where there is no limit.
  public func layout(_ size: SizeRange) -> Layout {
    Layout(
      size: Size(
        width: size.max.width == SizeRange.unlimited ? size.min.width : size.max.width,
        height: size.max.height == SizeRange.unlimited ? size.min.height : size.max.height))
  }

  /// Draws nothing.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {}

  /// The layout, with a size of the range.
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
      // It is to find its whole size, whatever is visible of it.
      var whole = Canvas(size: frame.size)
      draw(into: &whole, cancellation)
      canvas.draw(whole.grid, at: frame.origin)
    }
  }
}

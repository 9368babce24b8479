// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// The empty cells on the four sides of a content.
public struct Insets: Hashable, Sendable {
  /// The number of rows above the content.
  public var top: Int
  /// The number of columns to the left of the content.
  public var left: Int
  /// The number of rows below the content.
  public var bottom: Int
  /// The number of columns to the right of the content.
  public var right: Int

  /// Creates insets, whose values are clamped between 0 and 2^20 when they are used.
  public init(top: Int = 0, left: Int = 0, bottom: Int = 0, right: Int = 0) {
    self.top = top
    self.left = left
    self.bottom = bottom
    self.right = right
  }

  /// Creates equal insets on all four sides.
  public init(_ all: Int) { self.init(top: all, left: all, bottom: all, right: all) }

  /// The insets, clamped so that they can be added without overflow.
  var clamped: Insets {
    func clamp(_ value: Int) -> Int { min(max(0, value), 1 << 20) }
    return Insets(top: clamp(top), left: clamp(left), bottom: clamp(bottom), right: clamp(right))
  }

  var origin: Point { Point(x: left, y: top) }

  func within(_ size: Size) -> Size {
    Size(
      width: max(0, size.width.clampedLength - left - right), height: max(0, size.height.clampedLength - top - bottom))
  }

  func around(_ size: Size) -> Size {
    Size(width: size.width.clampedLength + left + right, height: size.height.clampedLength + top + bottom)
  }
}

/// A content that surrounds another with empty cells.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASInsetLayoutSpec`.
public struct InsetContent: NodeContent {
  /// The empty cells.
  public var insets: Insets
  /// The content within the insets.
  public var child: any NodeContent

  /// Creates a content that surrounds another with empty cells.
  public init(_ insets: Insets, _ child: any NodeContent) {
    self.insets = insets
    self.child = child
  }

  /// Returns the child's size with the insets.
  public func layout(_ size: SizeRange) -> Layout {
    let insets = insets.clamped
    let max = size.max
    let inner = insets.within(max)
    // A dimension without a limit has none within the insets either.
    let layout = child.layoutWithin(
      SizeRange(
        min: insets.within(size.min),
        max: Size(
          width: max.width == SizeRange.unlimited ? max.width : inner.width,
          height: max.height == SizeRange.unlimited ? max.height : inner.height)))
    return Layout(size: size.clamp(insets.around(layout.size)), frames: layout.frames(at: insets.origin))
  }

  /// Draws the child within the insets.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let insets = insets.clamped
    let frame = Rect(origin: insets.origin, size: insets.within(canvas.visibleRect.size))
    child.draw(in: frame, of: &canvas, cancellation)
  }
}

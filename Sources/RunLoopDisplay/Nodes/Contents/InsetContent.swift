// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// The cells that are left free at the four sides of a content.
public struct Insets: Hashable, Sendable {
  /// Rows above.
  public var top: Int
  /// Columns to the left.
  public var left: Int
  /// Rows below.
  public var bottom: Int
  /// Columns to the right.
  public var right: Int

  /// Makes insets; when they are used, a value below zero counts as zero, and one above 2^20 as that.
  public init(top: Int = 0, left: Int = 0, bottom: Int = 0, right: Int = 0) {
    self.top = top
    self.left = left
    self.bottom = bottom
    self.right = right
  }

  /// Makes equal insets at the four sides.
  public init(_ all: Int) { self.init(top: all, left: all, bottom: all, right: all) }

  /// The insets within limits in which they can be added.
  var clamped: Insets {
    func clamp(_ value: Int) -> Int { min(max(0, value), 1 << 20) }
    return Insets(top: clamp(top), left: clamp(left), bottom: clamp(bottom), right: clamp(right))
  }

  var origin: Point { Point(x: left, y: top) }

  /// A size without the insets.
  func within(_ size: Size) -> Size {
    Size(
      width: max(0, size.width.clampedLength - left - right), height: max(0, size.height.clampedLength - top - bottom))
  }

  /// A size with the insets.
  func around(_ size: Size) -> Size {
    Size(width: size.width.clampedLength + left + right, height: size.height.clampedLength + top + bottom)
  }
}

/// A content with free cells around it.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASInsetLayoutSpec`.
public struct InsetContent: NodeContent {
  /// The free cells.
  public var insets: Insets
  /// The content within them.
  public var child: any NodeContent

  /// Makes a content with free cells around another.
  public init(_ insets: Insets, _ child: any NodeContent) {
    self.insets = insets
    self.child = child
  }

  /// The child's size with the insets.
  public func layout(_ size: SizeRange) -> Layout {
    let insets = insets.clamped
    let max = size.max
    let inner = insets.within(max)
    // What has no limit has none within the insets either.
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

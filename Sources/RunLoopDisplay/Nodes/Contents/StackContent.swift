// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// A content that arranges its children in a row or a column.
///
/// Each child gets the space along the axis that the children before it have left. ``FlexibleContent`` children share
/// the remaining space equally.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `ASStackLayoutSpec`.
public struct StackContent: NodeContent {
  /// The directions in which children can be arranged.
  public enum Axis: Hashable, Sendable { case horizontal, vertical }

  /// The alignments of children across the axis.
  public enum Alignment: Hashable, Sendable {
    case start, center, end
    /// The children are as large as the stack.
    case fill
  }

  /// The direction in which the children are arranged.
  public var axis: Axis
  /// The number of cells between two children.
  public var spacing: Int
  /// The alignment of children across the axis.
  public var alignment: Alignment
  /// The children, in order.
  public var children: [any NodeContent]

  /// Creates a stack.
  ///
  /// - Parameters:
  ///   - axis: The direction in which the children are arranged.
  ///   - spacing: The number of cells between two children. Negative values count as zero.
  ///   - alignment: The alignment of children across the axis.
  ///   - children: The children, in order.
  public init(_ axis: Axis, spacing: Int = 0, alignment: Alignment = .fill, _ children: [any NodeContent]) {
    self.axis = axis
    self.spacing = spacing
    self.alignment = alignment
    self.children = children
  }

  /// Returns the size that fits all children.
  public func layout(_ size: SizeRange) -> Layout {
    let placed = place(size)
    return Layout(
      size: placed.size, frames: placed.children.flatMap { $0.layout.frames(at: $0.frame.origin) })
  }

  /// Draws each child in its place.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let placed = place(SizeRange(exactly: canvas.visibleRect.size))
    for (child, place) in zip(children, placed.children) { child.draw(in: place.frame, of: &canvas, cancellation) }
  }
}

// The layout, in which the length is measured along the axis and the breadth across it.
extension StackContent {
  private typealias Placed = (frame: Rect, layout: Layout)

  private func place(_ range: SizeRange) -> (size: Size, children: [Placed]) {
    let spacing = Swift.min(Swift.max(0, spacing), SizeRange.unlimited)
    let limit = length(range.max)
    var used = spacing * Swift.max(0, children.count - 1)
    var layouts = [Layout?](repeating: nil, count: children.count)
    var flexible = 0
    for (index, child) in children.enumerated() {
      if child is FlexibleContent {
        flexible += 1
        continue
      }
      let layout = child.layoutWithin(childRange(range, 0...Swift.max(0, limit - used)))
      used += length(layout.size)
      layouts[index] = layout
    }
    // Without a limit there is no remaining space to share.
    var free = limit == SizeRange.unlimited ? Swift.max(0, length(range.min) - used) : Swift.max(0, limit - used)
    for (index, child) in children.enumerated() where layouts[index] == nil {
      let part = free / flexible
      layouts[index] = child.layoutWithin(childRange(range, part...part))
      used += part
      free -= part
      flexible -= 1
    }
    let widest = layouts.reduce(0) { Swift.max($0, breadth($1?.size ?? .zero)) }
    let size = range.clamp(self.size(length: Swift.min(used, SizeRange.unlimited), breadth: widest))
    var position = 0
    var placed: [Placed] = []
    for (child, layout) in zip(children, layouts) {
      guard var layout else { continue }
      if alignment == .fill, breadth(layout.size) != breadth(size) {
        layout = child.layoutWithin(SizeRange(exactly: self.size(length: length(layout.size), breadth: breadth(size))))
      }
      placed.append(
        (Rect(origin: origin(position, breadth(layout.size), in: breadth(size)), size: layout.size), layout))
      position += length(layout.size) + spacing
    }
    return (size, placed)
  }

  private func childRange(_ range: SizeRange, _ lengths: ClosedRange<Int>) -> SizeRange {
    SizeRange(
      min: size(length: lengths.lowerBound, breadth: alignment == .fill ? breadth(range.min) : 0),
      max: size(length: lengths.upperBound, breadth: breadth(range.max)))
  }

  private func origin(_ position: Int, _ breadth: Int, in available: Int) -> Point {
    let across =
      switch alignment {
      case .start, .fill: 0
      case .center: (available - breadth) / 2
      case .end: available - breadth
      }
    return axis == .horizontal ? Point(x: position, y: across) : Point(x: across, y: position)
  }

  private func length(_ size: Size) -> Int { axis == .horizontal ? size.width : size.height }
  private func breadth(_ size: Size) -> Int { axis == .horizontal ? size.height : size.width }

  private func size(length: Int, breadth: Int) -> Size {
    axis == .horizontal ? Size(width: length, height: breadth) : Size(width: breadth, height: length)
  }
}

/// A content that takes up the remaining space in a ``StackContent``, which is empty space by default.
public struct FlexibleContent: NodeContent {
  /// The content.
  public var child: any NodeContent

  /// Creates a content that takes up the remaining space.
  public init(_ child: any NodeContent = EmptyContent()) { self.child = child }

  /// Returns the child's layout.
  public func layout(_ size: SizeRange) -> Layout { child.layout(size) }

  /// Draws the child.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) { child.draw(into: &canvas, cancellation) }
}

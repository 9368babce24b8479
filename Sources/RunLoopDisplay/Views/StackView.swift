// SPDX-License-Identifier: Apache-2.0

/// Lays views out beside each other, or below each other.
///
/// Each arranged view gets the length that it needs, by its ``View/sizeThatFits(_:)``. What is left goes to the views
/// that were added as flexible, in equal parts; views for which there is no room are as short as what is left, so that
/// those at the beginning stay visible on a small screen. Hidden views take no room.
///
/// ```Swift
/// let stack = StackView(.vertical, spacing: 1)
/// stack.addArrangedSubview(Label("Load"))
/// stack.addArrangedSubview(list, isFlexible: true)
/// ```
///
/// The corresponding class of UIKit is `UIStackView`.
@MainActor
open class StackView: View {
  /// The directions in which the views follow each other.
  public enum Axis: Hashable, Sendable { case horizontal, vertical }

  /// The direction in which the views follow each other.
  public var axis: Axis {
    didSet { if axis != oldValue { setNeedsLayout() } }
  }
  /// The cells between two views; less than zero counts as zero.
  public var spacing: Int {
    didSet { if spacing != oldValue { setNeedsLayout() } }
  }
  /// The cells that are left free around the views.
  public var layoutMargins = Insets() {
    didSet { if layoutMargins != oldValue { setNeedsLayout() } }
  }
  /// The views that are laid out, in their order.
  public private(set) var arrangedSubviews: [View] = []
  private var flexible: Set<ObjectIdentifier> = []

  /// Makes an empty stack.
  public init(_ axis: Axis, spacing: Int = 0, frame: Rect = .zero) {
    self.axis = axis
    self.spacing = spacing
    super.init(frame: frame)
  }

  override open var drawsContents: Bool { false }

  /// Adds a view at the end.
  ///
  /// - Parameters:
  ///   - view: The view.
  ///   - isFlexible: Whether the view gets a part of the room that the others leave, instead of what it needs.
  public final func addArrangedSubview(_ view: View, isFlexible: Bool = false) {
    arrangedSubviews.removeAll { $0 === view }
    arrangedSubviews.append(view)
    if isFlexible { flexible.insert(ObjectIdentifier(view)) } else { flexible.remove(ObjectIdentifier(view)) }
    addSubview(view)
    setNeedsLayout()
  }

  /// Takes a view out of the arrangement and out of the stack.
  public final func removeArrangedSubview(_ view: View) {
    guard arrangedSubviews.contains(where: { $0 === view }) else { return }
    arrangedSubviews.removeAll { $0 === view }
    flexible.remove(ObjectIdentifier(view))
    if view.superview === self { view.removeFromSuperview() }
    setNeedsLayout()
  }

  override open func layoutSubviews() {
    let margins = layoutMargins.clamped
    let room = Rect(origin: bounds.origin + margins.origin, size: margins.within(bounds.size))
    let views = arrangedSubviews.filter { $0.superview === self && !$0.isHidden }
    let lengths = Arrangement.lengths(
      views.map { view in
        guard !flexible.contains(ObjectIdentifier(view)) else { return nil }
        let size = view.sizeThatFits(room.size)
        return axis == .horizontal ? size.width : size.height
      }, spacing: spacing, room: axis == .horizontal ? room.size.width : room.size.height)
    var place = 0
    for (view, length) in zip(views, lengths) {
      switch axis {
      case .horizontal:
        view.frame = Rect(x: room.minX + place, y: room.minY, width: length, height: room.size.height)
      case .vertical: view.frame = Rect(x: room.minX, y: room.minY + place, width: room.size.width, height: length)
      }
      place += length + spacing.clampedLength
    }
  }

  /// The size that the views need together.
  override open func sizeThatFits(_ size: Size) -> Size {
    let margins = layoutMargins.clamped
    let sizes = arrangedSubviews.filter { !$0.isHidden }.map { $0.sizeThatFits(size) }
    let gaps = spacing.clampedLength * max(0, sizes.count - 1)
    let (widths, heights) = (sizes.map(\.width.clampedLength), sizes.map(\.height.clampedLength))
    let isHorizontal = axis == .horizontal
    return Size(
      width: margins.left + margins.right + (isHorizontal ? widths.reduce(gaps, +) : widths.max() ?? 0),
      height: margins.top + margins.bottom + (isHorizontal ? heights.max() ?? 0 : heights.reduce(gaps, +)))
  }
}

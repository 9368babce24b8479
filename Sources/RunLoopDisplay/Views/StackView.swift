// SPDX-License-Identifier: Apache-2.0

/// A view that lays out views in a row or a column.
///
/// Each arranged view gets the length that it needs, by its ``View/sizeThatFits(_:)``. Flexible views share the
/// remaining length equally. If there is too little space, the views at the end are shortened, so that those at the
/// beginning stay visible on a small screen. Hidden views and those that were removed take up no space.
///
/// Labels, buttons, stacks and grids whose size changes are arranged again. For other views, call
/// ``View/setNeedsLayout()``.
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
  /// The directions in which views can be arranged.
  public enum Axis: Hashable, Sendable { case horizontal, vertical }

  /// The direction in which the views are arranged.
  public var axis: Axis {
    didSet { if axis != oldValue { setNeedsLayout() } }
  }
  /// The number of cells between two views, where negative values count as zero.
  public var spacing: Int {
    didSet { if spacing != oldValue { setNeedsLayout() } }
  }
  /// The margins around the views, none by default.
  public var layoutMargins = Insets() {
    didSet { if layoutMargins != oldValue { setNeedsLayout() } }
  }
  /// The views that the stack lays out, in order, initially none.
  public private(set) var arrangedSubviews: [View] = []
  private var flexible: Set<ObjectIdentifier> = []

  /// Creates an empty stack.
  public init(_ axis: Axis, spacing: Int = 0, frame: Rect = .zero) {
    self.axis = axis
    self.spacing = spacing
    super.init(frame: frame)
  }

  override open var drawsContents: Bool { false }
  override final var arrangesBySize: Bool { true }

  /// Adds a view at the end.
  ///
  /// - Parameters:
  ///   - view: The view.
  ///   - isFlexible: Whether the view gets a share of the remaining length, instead of being sized to fit.
  public final func addArrangedSubview(_ view: View, isFlexible: Bool = false) {
    arrangedSubviews.removeAll { $0 === view }
    arrangedSubviews.append(view)
    if isFlexible { flexible.insert(ObjectIdentifier(view)) } else { flexible.remove(ObjectIdentifier(view)) }
    addSubview(view)
    setNeedsLayout()
  }

  /// Removes a view from the arrangement and from the stack.
  public final func removeArrangedSubview(_ view: View) {
    guard arrangedSubviews.contains(where: { $0 === view }) else { return }
    arrangedSubviews.removeAll { $0 === view }
    flexible.remove(ObjectIdentifier(view))
    if view.superview === self { view.removeFromSuperview() }
    setNeedsLayout()
  }

  private var visibleViews: [View] { arrangedSubviews.filter { $0.superview === self && !$0.isHidden } }

  override open func layoutSubviews() {
    let margins = layoutMargins.clamped
    let room = Rect(origin: bounds.origin + margins.origin, size: margins.within(bounds.size))
    let views = visibleViews
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
        view.arrange(in: Rect(x: room.minX + place, y: room.minY, width: length, height: room.size.height))
      case .vertical:
        view.arrange(in: Rect(x: room.minX, y: room.minY + place, width: room.size.width, height: length))
      }
      place += length + spacing.clampedLength
    }
  }

  /// The size that fits all views.
  override open func sizeThatFits(_ size: Size) -> Size {
    let margins = layoutMargins.clamped
    let room = margins.within(size)
    let sizes = visibleViews.map { $0.sizeThatFits(room) }
    let gaps = spacing.clampedLength * max(0, sizes.count - 1)
    let (widths, heights) = (sizes.map(\.width.clampedLength), sizes.map(\.height.clampedLength))
    let isHorizontal = axis == .horizontal
    return Size(
      width: margins.left + margins.right + (isHorizontal ? widths.reduce(gaps, +) : widths.max() ?? 0),
      height: margins.top + margins.bottom + (isHorizontal ? heights.max() ?? 0 : heights.reduce(gaps, +)))
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A view that surrounds another view with a border and a title.
///
/// A box with fewer than three columns or rows has no border, and its content fills it.
@MainActor
open class BoxView: View {
  /// The title in the top edge, which is truncated with an ellipsis if it does not fit.
  public var title: String {
    didSet { if title != oldValue { setNeedsDisplay() } }
  }
  /// The style of the border, dim by default.
  public var borderStyle = Style(attributes: .dim) {
    didSet { if borderStyle != oldValue { setNeedsDisplay() } }
  }
  /// The style of the title, bold by default.
  public var titleStyle = Style(attributes: .bold) {
    didSet { if titleStyle != oldValue { setNeedsDisplay() } }
  }
  /// The cells between the border and the content, none by default.
  public var padding = Insets() {
    didSet { if padding != oldValue { setNeedsLayout() } }
  }
  /// The view inside the border.
  public let content: View

  /// Creates a box around a view.
  public init(_ title: String = "", content: View, frame: Rect = .zero) {
    self.title = title
    self.content = content
    super.init(frame: frame)
    addSubview(content)
  }

  override final var arrangesBySize: Bool { true }
  private var hasBorder: Bool { bounds.size.width >= 3 && bounds.size.height >= 3 }

  override open func layoutSubviews() {
    guard hasBorder else { return content.arrange(in: bounds) }
    let padding = padding.clamped
    let inner = Size(width: bounds.size.width - 2, height: bounds.size.height - 2)
    content.arrange(in: Rect(origin: padding.origin + Point(x: 1, y: 1), size: padding.within(inner)))
  }

  override open func draw(_ canvas: inout Canvas) {
    guard hasBorder else { return }
    let (width, height) = (bounds.size.width, bounds.size.height)
    canvas.fill(Rect(x: 1, y: 0, width: width - 2, height: 1), "─", style: borderStyle)
    canvas.fill(Rect(x: 1, y: height - 1, width: width - 2, height: 1), "─", style: borderStyle)
    canvas.fill(Rect(x: 0, y: 1, width: 1, height: height - 2), "│", style: borderStyle)
    canvas.fill(Rect(x: width - 1, y: 1, width: 1, height: height - 2), "│", style: borderStyle)
    for (x, y, corner) in [(0, 0, "╭"), (width - 1, 0, "╮"), (0, height - 1, "╰"), (width - 1, height - 1, "╯")] {
      canvas.draw(corner, at: Point(x: x, y: y), style: borderStyle)
    }
    guard !title.isEmpty, width >= 5 else { return }
    canvas.draw(" \(title.truncated(toWidth: width - 4)) ", at: Point(x: 1, y: 0), style: titleStyle)
  }

  /// The size of the content plus the border and padding.
  override open func sizeThatFits(_ size: Size) -> Size {
    let padding = padding.clamped
    let edge = Insets(
      top: 1 + padding.top, left: 1 + padding.left, bottom: 1 + padding.bottom, right: 1 + padding.right)
    return edge.around(content.sizeThatFits(edge.within(size)))
  }
}

// SPDX-License-Identifier: Apache-2.0

/// One line of text.
///
/// The corresponding class of UIKit is `UILabel`.
@MainActor
open class Label: View {
  /// The alignment of the text in a wider label.
  public enum Alignment: Hashable, Sendable {
    /// At the beginning, in the middle, at the end.
    case left, center, right
  }

  /// The text; if it does not fit, it is cut off at the end.
  ///
  /// Setting the same text again changes nothing.
  public var text: String {
    didSet { if text != oldValue { setNeedsDisplay() } }
  }
  /// The style of the text.
  public var style: Style {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The alignment of the text.
  public var alignment = Alignment.left {
    didSet { if alignment != oldValue { setNeedsDisplay() } }
  }

  /// Makes a label.
  public init(_ text: String = "", style: Style = .plain, frame: Rect = .zero) {
    self.text = text
    self.style = style
    super.init(frame: frame)
  }

  override open func draw(_ canvas: inout Canvas) {
    let free = alignment == .left ? 0 : max(0, bounds.size.width - text.cellWidth)
    canvas.draw(text, at: Point(x: alignment == .center ? free / 2 : free, y: 0), style: style)
  }
}

extension StringProtocol {
  /// How many cells the text takes.
  var cellWidth: Int { reduce(0) { $0 + Int(Cell($1).width) } }
}

// SPDX-License-Identifier: Apache-2.0

/// A row of a ``ListView``, which shows one line of text, or one text for each column of the list.
///
/// A subclass can draw something else. Rows are never hit by touches, which the list handles.
///
/// The corresponding class of UIKit is `UITableViewCell`.
@MainActor
open class ListRow: View {
  /// The text, empty by default.
  public var text = "" {
    didSet { if text != oldValue { setNeedsDisplay() } }
  }
  /// The texts of the columns, or an empty array, which is the default, to show ``text`` across all columns.
  public var texts: [String] = [] {
    didSet { if texts != oldValue { setNeedsDisplay() } }
  }
  /// The style of the text, plain by default.
  public var style = Style.plain {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The zero-based index of the row in the list, initially 0.
  public internal(set) final var index = 0
  /// Whether the row is selected, which the list sets and which is initially `false`.
  public internal(set) final var isSelected = false {
    didSet { if isSelected != oldValue { selectionDidChange() } }
  }

  /// Creates a row.
  override public init(frame: Rect = .zero) {
    super.init(frame: frame)
    isUserInteractionEnabled = false
  }

  /// Called after the row has been selected or deselected.
  ///
  /// Overrides must call `super`.
  open func selectionDidChange() {
    background = isSelected ? .reversed : nil
    setNeedsDisplay()
  }

  override open func draw(_ canvas: inout Canvas) {
    var style = style
    if isSelected { style.attributes.formUnion(.reverse) }
    guard !texts.isEmpty, let layout = (superview as? ListView)?.columnLayout, !layout.isEmpty else {
      canvas.draw(text, at: .zero, style: style)
      return
    }
    let texts = texts
    layout.draw({ $0 < texts.count ? texts[$0] : nil }, &canvas, style)
  }
}

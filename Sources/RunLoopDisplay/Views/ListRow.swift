// SPDX-License-Identifier: Apache-2.0

/// A row that a ``ListView`` shows: one line of text, or a text for each column of the list, unless a subclass draws
/// something else.
///
/// Touches go to the list: a row is not hit.
///
/// The corresponding class of UIKit is `UITableViewCell`.
@MainActor
open class ListRow: View {
  /// The text.
  public var text = "" {
    didSet { if text != oldValue { setNeedsDisplay() } }
  }
  /// The texts of the columns, if the list has columns; where they are empty, ``text`` is shown across all of them.
  public var texts: [String] = [] {
    didSet { if texts != oldValue { setNeedsDisplay() } }
  }
  /// The style of the text.
  public var style = Style.plain {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The number of the row that is shown, from 0.
  public internal(set) final var index = 0
  /// Whether the row is the selected one; the list sets it.
  public internal(set) final var isSelected = false {
    didSet { if isSelected != oldValue { selectionDidChange() } }
  }

  /// Makes a row.
  override public init(frame: Rect = .zero) {
    super.init(frame: frame)
    isUserInteractionEnabled = false
  }

  /// Called when the row was selected, or is no longer selected; an override calls `super`.
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

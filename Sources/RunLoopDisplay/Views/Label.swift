// SPDX-License-Identifier: Apache-2.0

/// A text of one line or several.
///
/// The corresponding class of UIKit is `UILabel`.
@MainActor
open class Label: View {
  /// The alignment of the text in a wider label.
  public enum Alignment: Hashable, Sendable {
    /// At the beginning, in the middle, at the end.
    case left, center, right
  }

  /// What becomes of a text that is wider than the label.
  public enum LineBreakMode: Hashable, Sendable {
    /// It is cut off.
    case clipping
    /// It is cut off, and an ellipsis shows that.
    case truncatingTail
    /// It continues in the next line; where the label has no further line, an ellipsis shows that.
    case wordWrapping
  }

  /// The text; if it does not fit, ``lineBreakMode`` says what is shown.
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

  /// What becomes of a text that is wider than the label; it is cut off, unless this is set.
  public var lineBreakMode = LineBreakMode.clipping {
    didSet { if lineBreakMode != oldValue { setNeedsDisplay() } }
  }

  /// Makes a label.
  public init(_ text: String = "", style: Style = .plain, frame: Rect = .zero) {
    self.text = text
    self.style = style
    super.init(frame: frame)
  }

  override open func draw(_ canvas: inout Canvas) {
    let width = bounds.size.width
    switch lineBreakMode {
    case .clipping: draw(text, row: 0, &canvas)
    case .truncatingTail: draw(text.truncated(toWidth: width), row: 0, &canvas)
    case .wordWrapping:
      let lines = TextLines(text, width: width, limit: bounds.size.height)
      for (row, line) in lines.lines.enumerated() {
        let isCut = lines.isTruncated && row == lines.lines.count - 1
        draw(isCut ? (line.text + "…").truncated(toWidth: width) : String(line.text), row: row, &canvas)
      }
    }
  }

  private func draw(_ text: String, row: Int, _ canvas: inout Canvas) {
    let free = alignment == .left ? 0 : max(0, bounds.size.width - text.cellWidth)
    canvas.draw(text, at: Point(x: alignment == .center ? free / 2 : free, y: row), style: style)
  }

  /// The size of the text; wrapped in the width that is offered, if the label wraps.
  override open func sizeThatFits(_ size: Size) -> Size {
    guard lineBreakMode == .wordWrapping else { return Size(width: text.cellWidth, height: 1) }
    let lines = TextLines(text, width: size.width, limit: max(0, size.height))
    return Size(width: lines.width, height: max(1, lines.lines.count))
  }
}

extension StringProtocol {
  /// How many cells the text takes.
  var cellWidth: Int { reduce(0) { $0 + Int(Cell($1).width) } }

  /// The text, or as much of it as leaves room for an ellipsis in a width.
  ///
  /// - Complexity: O(n) in the width.
  func truncated(toWidth width: Int) -> String {
    guard let end = end(leavingRoomForEllipsisIn: width)?.index else { return String(self) }
    return width > 0 ? self[..<end] + "…" : ""
  }

  /// Where the text is cut off so that an ellipsis follows in a width, and the cells before; nil: all of it has room.
  ///
  /// - Complexity: O(n) in the width. It allocates nothing.
  func end(leavingRoomForEllipsisIn width: Int) -> (index: Index, cells: Int)? {
    var taken = 0
    var end = (startIndex, 0)
    for index in indices {
      let cells = Int(Cell(self[index]).width)
      if taken + cells > width { return end }
      taken += cells
      // The ellipsis takes one cell.
      if taken <= width - 1 { end = (self.index(after: index), taken) }
    }
    return nil
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A view that shows one or more lines of text.
///
/// The corresponding class of UIKit is `UILabel`.
@MainActor
open class Label: View {
  /// The alignment of the text in a label that is wider.
  public enum Alignment: Hashable, Sendable {
    /// Aligned to the left, in the middle, or to the right.
    case left, center, right
  }

  /// The handling of text that is wider than the label.
  public enum LineBreakMode: Hashable, Sendable {
    /// The text is clipped.
    case clipping
    /// The text is truncated with an ellipsis.
    case truncatingTail
    /// The text continues on the next line. If it does not fit on the last line, it is truncated with an ellipsis.
    case wordWrapping
  }

  /// The text, which is shown according to ``lineBreakMode`` if it does not fit.
  public var text: String {
    didSet { if text != oldValue { contentsDidChange() } }
  }
  /// The style of the text.
  public var style: Style {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The alignment of the text, `left` by default.
  public var alignment = Alignment.left {
    didSet { if alignment != oldValue { setNeedsDisplay() } }
  }

  /// The handling of text that is wider than the label, `clipping` by default.
  public var lineBreakMode = LineBreakMode.clipping {
    didSet { if lineBreakMode != oldValue { contentsDidChange() } }
  }

  /// Creates a label.
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

  /// The size of the text, wrapped to the given width if the label wraps.
  override open func sizeThatFits(_ size: Size) -> Size {
    guard lineBreakMode == .wordWrapping else { return Size(width: text.cellWidth, height: 1) }
    let lines = TextLines(text, width: size.width, limit: max(0, size.height))
    return Size(width: lines.width, height: max(1, lines.lines.count))
  }
}

extension StringProtocol {
  /// The number of cells that the text occupies.
  var cellWidth: Int { reduce(0) { $0 + Int(Cell($1).width) } }

  /// Returns the text, truncated with an ellipsis if it is wider than `width`.
  ///
  /// - Complexity: O(n), where n is the width.
  func truncated(toWidth width: Int) -> String {
    guard let end = end(leavingRoomForEllipsisIn: width)?.index else { return String(self) }
    return width > 0 ? self[..<end] + "…" : ""
  }

  /// Returns the position at which to truncate the text before an ellipsis, and the width up to it, or nil if it fits.
  ///
  /// - Complexity: O(n), where n is the width, without allocating memory.
  func end(leavingRoomForEllipsisIn width: Int) -> (index: Index, cells: Int)? {
    var taken = 0
    var end = (startIndex, 0)
    for index in indices {
      let cells = Int(Cell(self[index]).width)
      if taken + cells > width { return end }
      taken += cells
      // The ellipsis occupies one cell.
      if taken <= width - 1 { end = (self.index(after: index), taken) }
    }
    return nil
  }
}

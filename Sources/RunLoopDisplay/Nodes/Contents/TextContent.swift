// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// A text in as many lines as its width requires.
///
/// Lines break at newlines, at spaces, and next to wide characters. Longer words are broken where the line is full.
public struct TextContent: NodeContent, Hashable {
  /// The alignments of the lines in a larger width.
  public enum Alignment: Hashable, Sendable { case left, center, right }

  /// The text.
  public var text: String
  /// The style of the text, whose background fills the whole area unless it is the default.
  public var style: Style
  /// The alignment of the lines.
  public var alignment: Alignment
  /// The maximum number of lines, or `nil`, the default, for as many as fit.
  ///
  /// An ellipsis replaces text that does not fit.
  public var lineLimit: Int?

  /// Creates a content.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - style: The style of the text.
  ///   - alignment: The alignment of the lines.
  ///   - lineLimit: The maximum number of lines, or `nil` for as many as fit.
  public init(_ text: String, style: Style = .plain, alignment: Alignment = .left, lineLimit: Int? = nil) {
    self.text = text
    self.style = style
    self.alignment = alignment
    self.lineLimit = lineLimit
  }

  /// Returns the width of the widest line and the height of all lines.
  ///
  /// - Complexity: O(n), where n is the length of the text.
  public func layout(_ size: SizeRange) -> Layout {
    let lines = lines(in: size.max)
    return Layout(size: size.clamp(Size(width: lines.width, height: lines.lines.count)))
  }

  /// Draws the lines, and ends the last visible one with an ellipsis if they do not all fit.
  public func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let area = canvas.visibleRect
    if style.background != .default { canvas.fill(area, style: style) }
    let lines = lines(in: area.size)
    for (row, line) in lines.lines.enumerated() {
      guard !cancellation.isCancelled else { return }
      if lines.isTruncated, row == lines.lines.count - 1 {
        drawTruncated(line, row, area.size.width, &canvas)
      } else {
        canvas.draw(line.text, at: Point(x: indent(line.width, in: area.size.width), y: row), style: style)
      }
    }
  }

  private func lines(in size: Size) -> TextLines {
    TextLines(text, width: size.width, limit: min(size.height, lineLimit ?? .max))
  }

  private func indent(_ width: Int, in available: Int) -> Int {
    switch alignment {
    case .left: 0
    case .center: max(0, available - width) / 2
    case .right: max(0, available - width)
    }
  }

  /// Draws a line with an ellipsis at its end, which replaces as many characters as necessary.
  private func drawTruncated(_ line: TextLines.Line, _ row: Int, _ available: Int, _ canvas: inout Canvas) {
    var text = line.text
    var width = line.width
    while width + 1 > available, let last = text.popLast() { width -= TextLines.width(of: last) }
    let x = canvas.draw(text, at: Point(x: indent(width + 1, in: available), y: row), style: style)
    canvas.draw("…", at: Point(x: x, y: row), style: style)
  }
}

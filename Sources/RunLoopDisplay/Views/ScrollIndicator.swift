// SPDX-License-Identifier: Apache-2.0

/// A line at the edge of a scroll view that indicates which part of the contents is visible.
@MainActor
final class ScrollIndicator: View {
  private let isVertical: Bool
  /// The cells of the line that represent the visible part.
  private var thumb = 0..<0

  init(isVertical: Bool) {
    self.isVertical = isVertical
    super.init()
    isUserInteractionEnabled = false
  }

  /// Shows a part of the contents, or hides the line if all of the contents are visible.
  ///
  /// - Parameters:
  ///   - frame: The frame of the line, which is as long as the view.
  ///   - offset: The start of the visible part.
  ///   - visible: The length of the visible part.
  ///   - contents: The length of the contents.
  func show(in frame: Rect, offset: Int, visible: Int, of contents: Int) {
    self.frame = frame
    let line = isVertical ? frame.size.height : frame.size.width
    isHidden = contents <= visible || line <= 0
    guard !isHidden else { return }
    let length = min(line, max(1, Self.scaled(visible, line, contents)))
    let (free, limit) = (line - length, contents - visible)
    var start = Self.scaled(offset, free, limit)
    // The thumb touches the ends of the line only at the ends of the contents.
    if start == 0, offset > 0, free > 0 { start = 1 }
    if start == free, offset < limit, free > 0 { start = free - 1 }
    guard thumb != start..<start + length else { return }
    thumb = start..<start + length
    setNeedsDisplay()
  }

  /// Scales a number from one length to another, rounded.
  private static func scaled(_ number: Int, _ length: Int, _ whole: Int) -> Int {
    Int((Double(number) * Double(length) / Double(max(1, whole))).rounded())
  }

  override func draw(_ canvas: inout Canvas) {
    canvas.fill(Rect(origin: .zero, size: frame.size), isVertical ? "│" : "─", style: Style(attributes: .dim))
    let place =
      isVertical
      ? Rect(x: 0, y: thumb.lowerBound, width: 1, height: thumb.count)
      : Rect(x: thumb.lowerBound, y: 0, width: thumb.count, height: 1)
    canvas.fill(place, isVertical ? "┃" : "━")
  }
}

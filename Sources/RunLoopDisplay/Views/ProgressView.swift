// SPDX-License-Identifier: Apache-2.0

/// A bar that shows progress, with a resolution of an eighth of a cell.
///
/// The corresponding class of UIKit is `UIProgressView`.
@MainActor
open class ProgressView: View {
  /// The progress from 0 to 1, to which other values are clamped; NaN counts as 0.
  public var progress: Double {
    didSet {
      progress = progress.isNaN ? 0 : min(max(0, progress), 1)
      if eighths(of: progress) != eighths(of: oldValue) { setNeedsDisplay() }
    }
  }
  /// The style of the completed part.
  public var style: Style {
    didSet { if style != oldValue { setNeedsDisplay() } }
  }
  /// The style of the remaining part, dim by default.
  public var trackStyle = Style(attributes: .dim) {
    didSet { if trackStyle != oldValue { setNeedsDisplay() } }
  }

  /// Creates a progress bar.
  public init(progress: Double = 0, style: Style = Style(foreground: .green), frame: Rect = .zero) {
    self.progress = progress.isNaN ? 0 : min(max(0, progress), 1)
    self.style = style
    super.init(frame: frame)
  }

  private static let parts: [Character] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  private func eighths(of progress: Double) -> Int { Int((progress * Double(bounds.size.width * 8)).rounded()) }

  override open func draw(_ canvas: inout Canvas) {
    let (width, height) = (bounds.size.width, bounds.size.height)
    let done = eighths(of: progress)
    canvas.fill(Rect(x: 0, y: 0, width: width, height: height), "·", style: trackStyle)
    canvas.fill(Rect(x: 0, y: 0, width: done / 8, height: height), "█", style: style)
    guard done % 8 != 0 else { return }
    canvas.fill(Rect(x: done / 8, y: 0, width: 1, height: height), Self.parts[done % 8 - 1], style: style)
  }

  /// One row of the given width.
  override open func sizeThatFits(_ size: Size) -> Size { Size(width: size.width, height: 1) }
}

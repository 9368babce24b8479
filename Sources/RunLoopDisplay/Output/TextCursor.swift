// SPDX-License-Identifier: Apache-2.0

/// Where the cursor of a terminal is, and how it looks.
///
/// Input methods, braille displays and screen readers follow the position, also of a cursor that is not visible.
public struct TextCursor: Hashable, Sendable {
  /// The looks of a visible cursor.
  public enum Shape: Hashable, Sendable {
    /// The whole cell, a line below it, or a line before it.
    case block, underline, bar

    /// The number of the shape, without blinking, in DECSCUSR.
    var number: Int {
      switch self {
      case .block: 2
      case .underline: 4
      case .bar: 6
      }
    }
  }

  /// The cell.
  public var position: Point
  /// How the cursor looks; nil means that it is not visible.
  public var shape: Shape?

  /// Makes a cursor.
  public init(at position: Point, shape: Shape? = nil) {
    self.position = position
    self.shape = shape
  }
}

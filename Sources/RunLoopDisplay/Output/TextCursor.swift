// SPDX-License-Identifier: Apache-2.0

/// The position and shape of a terminal's cursor.
///
/// Input methods, braille displays and screen readers follow the position even if the cursor is not visible.
public struct TextCursor: Hashable, Sendable {
  /// The shape of a visible cursor.
  public enum Shape: Hashable, Sendable {
    /// The whole cell, a line below it, or a vertical line before it.
    case block, underline, bar

    /// The parameter of DECSCUSR for the steady shape.
    var number: Int {
      switch self {
      case .block: 2
      case .underline: 4
      case .bar: 6
      }
    }
  }

  /// The cell of the cursor.
  public var position: Point
  /// The shape of the cursor, or `nil`, the default, if it is not visible.
  public var shape: Shape?

  /// Creates a cursor.
  public init(at position: Point, shape: Shape? = nil) {
    self.position = position
    self.shape = shape
  }
}

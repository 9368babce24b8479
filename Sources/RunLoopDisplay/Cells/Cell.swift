// SPDX-License-Identifier: Apache-2.0

/// A cell of the screen: a character and its style.
///
/// A character that is two cells wide is stored in the left cell. The right cell is a ``continuation(style:)``.
public struct Cell: Hashable, Sendable {
  /// The width in the upper byte, followed by the glyph.
  private let bits: UInt32
  /// The style of the character.
  public var style: Style
  /// A scalar, the number of a cluster of several scalars, or 0 for the right half of a wide character.
  var glyph: UInt32 { bits & Self.lastGlyph }
  /// The number of cells that the character occupies: 1, 2, or 0 for a continuation.
  public var width: UInt8 { UInt8(truncatingIfNeeded: bits >> 24) }

  /// The largest number that a cell can refer to.
  static let lastGlyph: UInt32 = 0xFF_FFFF

  init(glyph: UInt32, width: UInt8, style: Style) {
    bits = glyph | UInt32(width) << 24
    self.style = style
  }

  /// Creates a cell with a character.
  ///
  /// Control characters and characters without width are shown as the replacement character.
  public init(_ character: Character, style: Style = .plain) {
    self = Glyphs.cell(of: Substring(String(character)).unicodeScalars, style: style)
  }

  /// A space.
  public static let blank = Cell(glyph: 0x20, width: 1, style: .plain)

  /// Returns the right half of a wide character.
  public static func continuation(style: Style) -> Cell { Cell(glyph: 0, width: 0, style: style) }

  /// The character, or `nil` for a continuation.
  public var character: Character? { Glyphs.character(of: glyph) }

  /// The same character in one column, as shown by a terminal that does not know its width.
  package var narrow: Cell { Cell(glyph: glyph, width: 1, style: style) }

  /// Whether two cells look the same, such as blanks that differ only in text colour or weight.
  static func looksSame(_ left: Cell, _ right: Cell) -> Bool { left.normalized == right.normalized }

  /// The cell without invisible parts of its style.
  var normalized: Cell {
    guard glyph == Glyphs.space, style.attributes.isDisjoint(with: .drawnOnSpaces), style.decoration == 0 else {
      return self
    }
    return Cell(glyph: glyph, width: 1, style: Style(background: style.background))
  }
}

extension Style.Attributes {
  /// The attributes that are visible without a character.
  static let drawnOnSpaces: Self = [.underline, .reverse, .strikethrough]
}

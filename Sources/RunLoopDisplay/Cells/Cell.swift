// SPDX-License-Identifier: Apache-2.0

/// A place of the screen: a character and its style.
///
/// A character that is two cells wide is in the left cell; the right one is a ``continuation(style:)`` of the same
/// style.
public struct Cell: Hashable, Sendable {
  /// The width in the upper byte, and the glyph.
  private let bits: UInt32
  /// The style of the character.
  public var style: Style
  /// A scalar, or the number of a cluster of several; 0: the right half of what is in the cell before.
  var glyph: UInt32 { bits & 0xFF_FFFF }
  /// How many cells the character takes: 0 for a continuation, 1 or 2.
  public var width: UInt8 { UInt8(truncatingIfNeeded: bits >> 24) }

  init(glyph: UInt32, width: UInt8, style: Style) {
    bits = glyph | UInt32(width) << 24
    self.style = style
  }

  /// Makes the cell of a character.
  ///
  /// A control character, or a character of no width, is shown as the replacement character.
  public init(_ character: Character, style: Style = .plain) {
    self = Glyphs.cell(of: Substring(String(character)).unicodeScalars, style: style)
  }

  /// A space.
  public static let blank = Cell(glyph: 0x20, width: 1, style: .plain)

  /// The right half of a wide character.
  public static func continuation(style: Style) -> Cell { Cell(glyph: 0, width: 0, style: style) }

  /// The character; nil for a continuation.
  public var character: Character? { Glyphs.character(of: glyph) }

  /// The same character in one column, as a terminal shows it that does not know its width.
  package var narrow: Cell { Cell(glyph: glyph, width: 1, style: style) }

  /// Whether two cells look the same: an empty place has no text whose colour or weight could be seen.
  static func looksSame(_ left: Cell, _ right: Cell) -> Bool { left.normalized == right.normalized }

  /// The cell with what cannot be seen of its style taken away.
  var normalized: Cell {
    guard glyph == Glyphs.space, style.attributes.isDisjoint(with: .drawnOnSpaces), style.decoration == 0 else {
      return self
    }
    return Cell(glyph: glyph, width: 1, style: Style(background: style.background))
  }
}

extension Style.Attributes {
  /// What is seen without a character.
  static let drawnOnSpaces: Self = [.underline, .reverse, .strikethrough]
}

// SPDX-License-Identifier: Apache-2.0

/// A place of the screen: a character and its style.
///
/// A character that is two cells wide is in the left cell; the right one is a ``continuation(style:)`` of the same
/// style.
public struct Cell: Hashable, Sendable {
  /// A scalar, or the number of a cluster of several; 0: the right half of what is in the cell before.
  let glyph: UInt32
  /// The style of the character.
  public var style: Style
  /// How many cells the character takes: 0 for a continuation, 1 or 2.
  public let width: UInt8

  init(glyph: UInt32, width: UInt8, style: Style) {
    self.glyph = glyph
    self.width = width
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

  /// Whether two cells look the same: an empty place has no text whose colour or weight could be seen.
  static func looksSame(_ left: Cell, _ right: Cell) -> Bool { left.normalized == right.normalized }

  /// The cell with what cannot be seen of its style taken away.
  var normalized: Cell {
    guard glyph == Glyphs.space, style.attributes.isDisjoint(with: .drawnOnSpaces) else { return self }
    return Cell(glyph: glyph, width: 1, style: Style(background: style.background))
  }
}

extension Style.Attributes {
  /// What is seen without a character.
  static let drawnOnSpaces: Self = [.underline, .reverse, .strikethrough]
}

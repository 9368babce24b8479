// SPDX-License-Identifier: Apache-2.0

/// The numbers by which cells name their characters.
enum Glyphs {
  static func cell(of character: Character, style: Style) -> Cell {
    let scalar = character.unicodeScalars.first!
    guard scalar.value >= 0x20 else { return Cell(glyph: 0xFFFD, width: 1, style: style) }
    return Cell(glyph: scalar.value, width: 1, style: style)
  }

  static func character(of glyph: UInt32) -> Character? {
    glyph == 0 ? nil : Unicode.Scalar(glyph).map(Character.init)
  }
}

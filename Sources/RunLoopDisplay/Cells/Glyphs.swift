// SPDX-License-Identifier: Apache-2.0

/// The numbers by which cells refer to their characters.
///
/// A character that consists of one scalar is represented by that scalar. Other characters have a number above all
/// scalars from a process-wide table that only grows.
enum Glyphs {
  static let space: UInt32 = 0x20
  static let replacement: UInt32 = 0xFFFD
  static let firstCluster: UInt32 = 0x11_0000

  /// Returns the cell of a character.
  ///
  /// - Complexity: O(n), where n is the number of scalars. Only a cluster's first use allocates memory.
  static func cell(of scalars: Substring.UnicodeScalarView, style: Style) -> Cell {
    // A character has at least one scalar.
    let first = scalars[scalars.startIndex]
    guard scalars.index(after: scalars.startIndex) != scalars.endIndex else { return cell(of: first, style: style) }
    let cluster = CharacterWidth.of(scalars)
    guard cluster.width > 0 else { return cell(of: first, style: style) }
    guard let glyph = ClusterTable.shared.glyph(of: scalars, cluster) else { return cell(of: first, style: style) }
    return Cell(glyph: glyph, width: UInt8(cluster.width), style: style)
  }

  /// Returns the cell of a character that consists of one scalar.
  static func cell(of scalar: Unicode.Scalar, style: Style) -> Cell {
    var width = CharacterWidth.of(scalar)
    // A mark that belongs to the preceding letter.
    if scalar.value >= 0x900, width == 1, scalar.properties.generalCategory == .spacingMark { width = 0 }
    return Cell(glyph: width == 0 ? replacement : scalar.value, width: UInt8(max(1, width)), style: style)
  }

  static func character(of glyph: UInt32) -> Character? {
    if glyph == 0 { return nil }
    if glyph >= firstCluster { return ClusterTable.shared.character(of: glyph) }
    return Unicode.Scalar(glyph).map(Character.init)
  }
}

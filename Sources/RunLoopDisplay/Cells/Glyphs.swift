// SPDX-License-Identifier: Apache-2.0

/// The numbers by which cells name their characters.
///
/// A character of one scalar is named by it. One of several gets a number above all scalars, from a table that the
/// whole process has in common and that only grows.
enum Glyphs {
  static let space: UInt32 = 0x20
  static let replacement: UInt32 = 0xFFFD
  /// The first number of a cluster.
  static let firstCluster: UInt32 = 0x11_0000

  /// The cell of a character, by its scalars.
  ///
  /// - Complexity: O(n) in the scalars. It allocates nothing, except when it sees a cluster for the first time.
  static func cell(of scalars: Substring.UnicodeScalarView, style: Style) -> Cell {
    // A character has a scalar.
    let first = scalars[scalars.startIndex]
    guard scalars.index(after: scalars.startIndex) != scalars.endIndex else { return cell(of: first, style: style) }
    let cluster = CharacterWidth.of(scalars)
    guard cluster.width > 0 else { return cell(of: first, style: style) }
    guard let glyph = ClusterTable.shared.glyph(of: scalars, cluster) else { return cell(of: first, style: style) }
    return Cell(glyph: glyph, width: UInt8(cluster.width), style: style)
  }

  /// The cell of a character of one scalar.
  static func cell(of scalar: Unicode.Scalar, style: Style) -> Cell {
    var width = CharacterWidth.of(scalar)
    // A mark that belongs to the letter before it.
    if scalar.value >= 0x900, width == 1, scalar.properties.generalCategory == .spacingMark { width = 0 }
    return Cell(glyph: width == 0 ? replacement : scalar.value, width: UInt8(max(1, width)), style: style)
  }

  static func character(of glyph: UInt32) -> Character? {
    if glyph == 0 { return nil }
    if glyph >= firstCluster { return ClusterTable.shared.character(of: glyph) }
    return Unicode.Scalar(glyph).map(Character.init)
  }
}

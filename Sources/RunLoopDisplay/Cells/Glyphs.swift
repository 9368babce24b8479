// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The numbers by which cells name their characters.
///
/// A character of one scalar is named by it. One of several gets a number above all scalars, from a table that the whole
/// process has in common and that only grows, up to a limit: a further one is shown by its first scalar.
enum Glyphs {
  static let space: UInt32 = 0x20
  static let replacement: UInt32 = 0xFFFD
  /// The first number of a cluster.
  static let firstCluster: UInt32 = 0x11_0000

  /// The cell of a character.
  ///
  /// - Complexity: O(n) in its scalars. It allocates nothing, except when it sees a cluster for the first time.
  static func cell(of character: Character, style: Style) -> Cell {
    let scalars = character.unicodeScalars
    // A character has a scalar.
    let first = scalars[scalars.startIndex]
    guard scalars.index(after: scalars.startIndex) != scalars.endIndex else { return cell(of: first, style: style) }
    let cluster = CharacterWidth.of(scalars)
    guard cluster.width > 0 else { return cell(of: first, style: style) }
    guard let glyph = ClusterTable.shared.glyph(of: character, cluster) else { return cell(of: first, style: style) }
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

/// The clusters that have a number.
final class ClusterTable: @unchecked Sendable {
  // Sendable: all variables are guarded by the lock.
  static let shared = ClusterTable(capacity: 32_768)

  /// The longest cluster, in bytes of UTF-8: more cannot be seen in two cells.
  static let longest = 64

  struct Entry {
    let character: Character
    let cluster: CharacterWidth.Cluster
    /// The first scalar, which a terminal shows that does not know the cluster.
    let base: Unicode.Scalar
    /// Where its bytes lie.
    let bytes: Range<Int>
  }

  private let capacity: Int
  private let lock = Lock()
  private var numbers: [Character: UInt32] = [:]
  private var entries: ContiguousArray<Entry> = []
  private var bytes: ContiguousArray<UInt8> = []

  init(capacity: Int) { self.capacity = capacity }

  /// The number of a cluster; nil if it is too long, or there are too many.
  func glyph(of character: Character, _ cluster: CharacterWidth.Cluster) -> UInt32? {
    lock.withLock {
      if let number = numbers[character] { return number }
      guard entries.count < capacity, character.utf8.count <= Self.longest else { return nil }
      let number = Glyphs.firstCluster + UInt32(entries.count)
      let start = bytes.count
      bytes.append(contentsOf: character.utf8)
      entries.append(
        Entry(
          character: character, cluster: cluster, base: character.unicodeScalars[character.unicodeScalars.startIndex],
          bytes: start..<bytes.count))
      numbers[character] = number
      return number
    }
  }

  func character(of glyph: UInt32) -> Character? {
    lock.withLock {
      let index = Int(glyph - Glyphs.firstCluster)
      return index < entries.count ? entries[index].character : nil
    }
  }

  /// Writes what a terminal is to be sent for a cluster.
  ///
  /// - Parameter whole: Whether the terminal knows clusters; if not, one that would take other cells there is sent by its
  ///   first scalar.
  /// - Returns: How many cells the terminal takes for it; nil if terminals do not agree about that.
  func write(_ glyph: UInt32, whole: Bool, to output: inout ContiguousArray<UInt8>) -> Int? {
    lock.withLock {
      let index = Int(glyph - Glyphs.firstCluster)
      guard index < entries.count else {
        output.append(0x3F)
        return 1
      }
      let entry = entries[index]
      guard whole || entry.cluster.isSumOfScalars else {
        output.append(contentsOf: String(entry.base).utf8)
        return CharacterWidth.of(entry.base)
      }
      for position in entry.bytes { output.append(bytes[position]) }
      return entry.cluster.isCertain ? entry.cluster.width : nil
    }
  }
}

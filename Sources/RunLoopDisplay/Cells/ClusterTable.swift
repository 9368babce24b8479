// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The table that assigns numbers to clusters of several scalars.
final class ClusterTable: @unchecked Sendable {
  // Sendable: the lock guards all variables.
  //
  // Cells refer to clusters by number, and can be kept for any length of time. Numbers are therefore never reused, and
  // the table only grows, up to the 15.6 million clusters for which cells have numbers. A million, more than the texts
  // of all languages contain, take about 80 MiB. Further ones are shown as their first scalar.
  static let shared = ClusterTable(capacity: Int(Cell.lastGlyph - Glyphs.firstCluster) + 1)

  /// The maximum length of a cluster in scalars, because two cells cannot show more.
  static let longest = 16

  struct Entry {
    let cluster: CharacterWidth.Cluster
    /// The index of the first scalar.
    let start: UInt32
    let count: UInt8
    /// The number of another cluster with the same hash, or 0.
    let other: UInt32

    var scalars: Range<Int> { Int(start)..<Int(start) + Int(count) }
  }

  let capacity: Int
  private let lock = Lock()
  /// The number of the last cluster with each hash.
  private var numbers: [UInt64: UInt32] = [:]
  private var entries: ContiguousArray<Entry> = []
  private var scalars: ContiguousArray<Unicode.Scalar> = []

  init(capacity: Int) { self.capacity = capacity }

  /// Returns the number of a cluster, or nil if it is too long or there are too many clusters.
  ///
  /// - Complexity: O(n), where n is the number of scalars. A known cluster needs no allocation.
  func glyph(of cluster: Substring.UnicodeScalarView, _ known: CharacterWidth.Cluster) -> UInt32? {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    var count = 0
    for scalar in cluster {
      hash = (hash ^ UInt64(scalar.value)) &* 0x100_0000_01B3
      count += 1
      if count > Self.longest { return nil }
    }
    return lock.withLock {
      let last = numbers[hash] ?? 0
      var number = last
      while number != 0 {
        let entry = entries[Int(number - Glyphs.firstCluster)]
        if scalars[entry.scalars].elementsEqual(cluster) { return number }
        number = entry.other
      }
      guard entries.count < capacity else { return nil }
      number = Glyphs.firstCluster + UInt32(entries.count)
      entries.append(Entry(cluster: known, start: UInt32(scalars.count), count: UInt8(count), other: last))
      scalars.append(contentsOf: cluster)
      numbers[hash] = number
      return number
    }
  }

  func character(of glyph: UInt32) -> Character? {
    lock.withLock {
      let index = Int(glyph - Glyphs.firstCluster)
      guard index < entries.count else { return nil }
      var text = String.UnicodeScalarView()
      text.append(contentsOf: scalars[entries[index].scalars])
      return Character(String(text))
    }
  }

  /// Writes a cluster to a terminal.
  ///
  /// - Parameter whole: The clusters that the terminal supports. Others are written as their first scalar if their
  ///   width would differ.
  /// - Returns: The width that the terminal uses, or nil if terminals do not agree on it.
  func write(_ glyph: UInt32, whole: CharacterWidth.Kinds, to writer: inout OutputWriter) -> Int? {
    lock.withLock {
      let index = Int(glyph - Glyphs.firstCluster)
      guard index < entries.count else {
        writer.put(scalar: Glyphs.replacement)
        return 1
      }
      let entry = entries[index]
      guard entry.cluster.isSumOfScalars || whole.contains(entry.cluster.kind) else {
        let base = scalars[Int(entry.start)]
        writer.put(scalar: base.value)
        return CharacterWidth.isNew(base) ? nil : CharacterWidth.of(base)
      }
      for position in entry.scalars { writer.put(scalar: scalars[position].value) }
      return entry.cluster.isCertain ? entry.cluster.width : nil
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The clusters of several scalars that have a number.
final class ClusterTable: @unchecked Sendable {
  // Sendable: all variables are guarded by the lock.
  //
  // A cell names a cluster by its number, and cells are values that anybody may keep: so a number is never used for
  // another cluster, and the table grows with what was seen. A million clusters, more than texts of all languages
  // have, take about 64 MiB; further ones are shown by their first scalar.
  static let shared = ClusterTable(capacity: 1 << 20)

  /// The longest cluster, in scalars: more cannot be seen in two cells.
  static let longest = 16

  struct Entry {
    let cluster: CharacterWidth.Cluster
    /// Where its scalars lie.
    let start: UInt32
    let count: UInt8
    /// Another cluster of the same hash; 0: none.
    let other: UInt32

    var scalars: Range<Int> { Int(start)..<Int(start) + Int(count) }
  }

  private let capacity: Int
  private let lock = Lock()
  /// Numbers by the hash of their scalars: the last of those with one hash.
  private var numbers: [UInt64: UInt32] = [:]
  private var entries: ContiguousArray<Entry> = []
  private var scalars: ContiguousArray<Unicode.Scalar> = []

  init(capacity: Int) { self.capacity = capacity }

  /// The number of a cluster; nil if it is too long, or there are too many.
  ///
  /// - Complexity: O(n) in the scalars. It allocates nothing if the cluster has a number.
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

  /// Writes what a terminal is to be sent for a cluster.
  ///
  /// - Parameter whole: The clusters that the terminal knows; another that would take other cells there is sent by its
  ///   first scalar.
  /// - Returns: How many cells the terminal takes for it; nil if terminals do not agree about that.
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

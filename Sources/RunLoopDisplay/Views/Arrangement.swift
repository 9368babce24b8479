// SPDX-License-Identifier: Apache-2.0

/// Divides a length among items: each gets the length it requests, and flexible items share the rest equally.
enum Arrangement {
  /// Returns the lengths in the order of the items, the first of which take precedence if there is too little room.
  ///
  /// - Parameter wanted: The requested lengths, with nil for flexible items.
  static func lengths(_ wanted: [Int?], spacing: Int, room: Int) -> [Int] {
    let spacing = spacing.clampedLength
    var lengths = wanted.map { ($0 ?? 0).clampedLength }
    var left = room - spacing * max(0, wanted.count - 1) - lengths.reduce(0, +)
    guard left >= 0 else {
      var place = 0
      for index in lengths.indices {
        lengths[index] = min(lengths[index], max(0, room - place))
        place += lengths[index] + spacing
      }
      return lengths
    }
    let flexible = wanted.indices.filter { wanted[$0] == nil }
    for (number, index) in flexible.enumerated() {
      lengths[index] = left / (flexible.count - number)
      left -= lengths[index]
    }
    return lengths
  }
}

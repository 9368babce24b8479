// SPDX-License-Identifier: Apache-2.0

/// How lengths share a room: each has what it wants, and those that want a part of the rest share that equally.
enum Arrangement {
  /// The length of each, in their order; where there is too little room, the first have what they want.
  ///
  /// - Parameter wanted: The wanted lengths; nil: a part of the rest.
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

// SPDX-License-Identifier: Apache-2.0

/// The widths of characters in cells.
///
/// Characters whose width is ambiguous according to Unicode occupy one cell.
package enum CharacterWidth {
  static let emojiSelector: UInt32 = 0xFE0F

  /// Returns the width of a scalar by itself, from 0 to 2 cells.
  ///
  /// Control characters have no width.
  static func of(_ scalar: Unicode.Scalar) -> Int {
    let value = scalar.value
    if value < 0x300 { return value < 0x20 || (value >= 0x7F && value < 0xA0) ? 0 : 1 }
    if value == 0x2028 || value == 0x2029 { return 0 }
    if contains(none, value) { return 0 }
    return contains(wide, value) ? 2 : 1
  }

  /// Kinds of clusters, of which a terminal combines either all or none.
  package struct Kinds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    static let emoji = Kinds(rawValue: 1)
    /// Hangul syllables.
    static let hangul = Kinds(rawValue: 2)
    /// Letters that consist of several parts, as in Devanagari.
    static let letters = Kinds(rawValue: 4)
    static let all: Kinds = [.emoji, .hangul, .letters]

    /// Creates the kind of a cluster from its first scalar.
    init(first scalar: Unicode.Scalar) {
      switch scalar.value {
      case 0x1100...0x115F, 0xA960...0xA97C, 0xAC00...0xD7A3: self = .hangul
      default: self = scalar.properties.isEmoji ? .emoji : .letters
      }
    }
  }

  /// The properties of a character that consists of several scalars.
  struct Cluster {
    var kind: Kinds
    var width: Int
    /// Whether a terminal without support for clusters uses the same total width for the individual scalars.
    var isSumOfScalars: Bool
    /// Whether all terminals agree on the width, and none combines the character with the next one.
    var isCertain: Bool
  }

  /// Returns the properties of a character that consists of several scalars.
  ///
  /// - Complexity: O(n), where n is the number of scalars.
  static func of(_ scalars: Substring.UnicodeScalarView) -> Cluster {
    var first = 0
    var kind: Kinds = []
    var sum = 0
    var count = 0
    var isNarrowEmoji = false
    var hasEmojiSelector = false
    var joinsNext = false
    var isCertain = true
    for scalar in scalars {
      let width = of(scalar)
      if count == 0 {
        first = width
        kind = Kinds(first: scalar)
        isNarrowEmoji = width == 1 && contains(emoji, scalar.value)
      }
      if scalar.value == emojiSelector { hasEmojiSelector = true }
      joinsNext = scalar.value == 0x200D || scalar.properties.canonicalCombiningClass == .virama
      if isNew(scalar) || scalar.value == 0x200D { isCertain = false }
      sum += width
      count += 1
    }
    guard first > 0 else { return Cluster(kind: kind, width: 0, isSumOfScalars: false, isCertain: false) }
    if first == 2 || isNarrowEmoji && hasEmojiSelector {
      return Cluster(
        kind: kind, width: 2, isSumOfScalars: sum == 2, isCertain: isCertain && first == 2 && !joinsNext)
    }
    // Letters of several parts, as in Devanagari, or two regional indicators, which form a flag.
    let width = min(2, sum)
    return Cluster(
      kind: kind, width: width, isSumOfScalars: width == sum, isCertain: isCertain && sum == 1 && !joinsNext)
  }

  /// Whether a scalar is so new that terminals with older tables use another width for it.
  static func isNew(_ scalar: Unicode.Scalar) -> Bool { isNew(scalar.value) }

  /// Whether a scalar is newer than a version of Unicode whose widths terminals know.
  package static func isNew(_ value: UInt32, since version: Int = knownVersion) -> Bool {
    guard value >= 0x800 else { return false }
    guard let age = Unicode.Scalar(value)?.properties.age else { return true }
    return age.major > version
  }

  /// The version of Unicode up to which all terminals agree on widths.
  package static let knownVersion = 12

  /// Whether a terminal that supports clusters may combine a character of one scalar with the following one.
  static func joinsNext(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x1100...0x115F, 0xA960...0xA97C, 0x1F1E6...0x1F1FF: true
    // Letters that are written before the one that they modify.
    case 0xD4E, 0x111C2...0x111C3, 0x1193F, 0x11941, 0x11A3A, 0x11A84...0x11A89, 0x11D46, 0x11F02: true
    default: false
    }
  }

  /// Whether a terminal may combine such a character with the preceding one, as with skin tone modifiers.
  static func joinsPrevious(_ scalar: UInt32) -> Bool { (0x1F3FB...0x1F3FF).contains(scalar) }

  /// Whether a value is in one of the ranges.
  ///
  /// - Complexity: O(log n), where n is the number of ranges.
  private static func contains(_ ranges: [UInt32], _ value: UInt32) -> Bool {
    var low = 0
    var high = ranges.count / 2
    while low < high {
      let middle = (low + high) / 2
      if value > ranges[middle * 2 + 1] {
        low = middle + 1
      } else if value < ranges[middle * 2] {
        high = middle
      } else {
        return true
      }
    }
    return false
  }
}

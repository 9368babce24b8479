// SPDX-License-Identifier: Apache-2.0

/// A difference between our loop and Core Foundation's that a program can show.
///
/// The numbers are those of the list of rules, which describes each. A number that is missing here is about locks,
/// descriptors, tolerances, closures, threads or processes, which programs cannot express.
package enum Difference: Int, CaseIterable, Hashable, Sendable {
  case m1 = 1
  case m2 = 2
  case m3 = 3
  case m4 = 4
  case m9 = 9
  case m11 = 11
  case m19 = 19
  case m20 = 20
  case m25 = 25
  case m26 = 26
  case m27 = 27
  case m30 = 30
  case m33 = 33
}

extension Difference: Comparable, CustomStringConvertible {
  /// Compares the numbers.
  package static func < (left: Difference, right: Difference) -> Bool { left.rawValue < right.rawValue }

  /// The number in the documentation's format.
  package var description: String { "M\(rawValue)" }
}

extension Difference {
  /// The behavior of our loop: the title of the article's section.
  package var summary: String {
    RuleChapter.differences.rules.first { $0.name == description }?.difference?.title ?? ""
  }
}

/// A set of differences with a fast lookup.
struct Switches {
  private let bits: UInt64

  init(_ differences: Set<Difference>) {
    bits = differences.reduce(0) { $0 | 1 << UInt64($1.rawValue) }
  }

  func contains(_ difference: Difference) -> Bool { bits & 1 << UInt64(difference.rawValue) != 0 }
}

// SPDX-License-Identifier: Apache-2.0

/// Where our loop does not do what Core Foundation's does, as far as a program can show it.
///
/// The numbers are those of the list of rules, which says what each is about. One that is missing here cannot be shown:
/// it is about locks, descriptors, tolerances, closures, threads or processes, of which the language of programs knows
/// nothing.
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
  /// Whether one has the smaller number.
  package static func < (left: Difference, right: Difference) -> Bool { left.rawValue < right.rawValue }

  /// The number as the documentation writes it.
  package var description: String { "M\(rawValue)" }
}

extension Difference {
  /// What our loop does: the title of the article's section.
  package var summary: String {
    RuleChapter.differences.rules.first { $0.name == description }?.difference?.title ?? ""
  }
}

/// A set of differences that is asked at every step.
struct Switches {
  private let bits: UInt64

  init(_ differences: Set<Difference>) {
    bits = differences.reduce(0) { $0 | 1 << UInt64($1.rawValue) }
  }

  func contains(_ difference: Difference) -> Bool { bits & 1 << UInt64(difference.rawValue) != 0 }
}

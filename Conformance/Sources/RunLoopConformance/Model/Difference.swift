// SPDX-License-Identifier: Apache-2.0

/// Where our loop does not do what Core Foundation's does, as far as a program can show it.
///
/// The numbers are those of the article on the differences. One that is missing here cannot be shown: it is about
/// locks, descriptors, tolerances, closures, threads or processes, of which the language of programs knows nothing.
package enum Difference: Int, CaseIterable, Hashable, Sendable {
  /// A loop does not sleep on top of work that it could run.
  case m1 = 1
  /// No wake-up is lost to a nested run.
  case m2 = 2
  /// Posting a block wakes the loop.
  case m3 = 3
  /// One performed source makes the pass a handled one.
  case m4 = 4
  /// Common items do not leak.
  case m9 = 9
  /// The common pseudo-mode is never a mode.
  case m11 = 11
  /// There is no timer descriptor, a bare wake-up takes no pass from what is due, and nothing starves.
  case m19 = 19
  /// Nothing outlives its reason.
  case m20 = 20
  /// Moving a timer makes no pass.
  case m25 = 25
  /// An unanswered wake-up belongs to the run around.
  case m26 = 26
  /// An invalid timer keeps its last date.
  case m27 = 27
  /// A timer keeps the date that its call-out gives it.
  case m30 = 30
  /// A date is kept, however far ahead it lies.
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

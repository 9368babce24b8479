// SPDX-License-Identifier: Apache-2.0

/// What is otherwise here than in Apple's loop, where an experiment shows it.
enum Difference: Sendable, Hashable {
  /// The loop does as Apple's.
  case nothing
  /// The loop differs on purpose, by the differences of these numbers.
  case numbered([String], String)
  /// There is something beside what Apple has, or it is made in another way, and no rule differs.
  case addition(String)

  /// The numbers of the differences, as `Differences.md` has them.
  var numbers: [String] {
    switch self {
    case .nothing, .addition: []
    case .numbered(let numbers, _): numbers
    }
  }

  /// What is otherwise; nil if nothing is.
  var text: String? {
    switch self {
    case .nothing: nil
    case .numbered(_, let text), .addition(let text): text
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A difference between this loop and Apple's that an experiment shows.
enum Difference: Sendable, Hashable {
  /// The loop behaves like Apple's.
  case nothing
  /// The loop differs intentionally, by the differences with these numbers.
  case numbered([String], String)
  /// The loop has an addition, or a different implementation, but no rule differs.
  case addition(String)

  /// The numbers of the differences in `Differences.md`.
  var numbers: [String] {
    switch self {
    case .nothing, .addition: []
    case .numbered(let numbers, _): numbers
    }
  }

  /// The description of the difference, or nil if there is none.
  var text: String? {
    switch self {
    case .nothing: nil
    case .numbered(_, let text), .addition(let text): text
    }
  }
}

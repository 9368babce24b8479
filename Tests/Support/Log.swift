// SPDX-License-Identifier: Apache-2.0

/// The entries that a test's call-outs write, in order, for comparison with a literal.
package final class Log: Sendable {
  private let entries = Box<[String]>([])

  package init() {}

  package func write(_ entry: String) { entries.update { $0.append(entry) } }

  package func clear() { entries.value = [] }

  /// All entries, separated by spaces.
  package var text: String { entries.value.joined(separator: " ") }

  package func count(of entry: String) -> Int { entries.value.count { $0 == entry } }
}

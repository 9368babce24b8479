// SPDX-License-Identifier: Apache-2.0

/// What the call-outs of a test write down, in order: a log that is compared with a literal.
package final class Log: Sendable {
  private let entries = Box<[String]>([])

  package init() {}

  package func write(_ entry: String) { entries.update { $0.append(entry) } }

  package func clear() { entries.value = [] }

  /// All entries, one space between.
  package var text: String { entries.value.joined(separator: " ") }

  package func count(of entry: String) -> Int { entries.value.count { $0 == entry } }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The entries that call-outs write, in order; can be used from any thread.
final class Record: Sendable {
  private let entries = Mutex<[String]>([])

  func write(_ entry: String) { entries.withLock { $0.append(entry) } }

  /// All entries in order.
  var lines: [String] { entries.withLock { $0 } }

  /// The number of entries.
  var count: Int { entries.withLock { $0.count } }

  /// All entries separated by spaces, or `none`.
  var text: String {
    let lines = lines
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }

  /// Returns the text so far, and clears the record.
  func take() -> String {
    let lines = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }
}

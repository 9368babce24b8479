// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What call-outs write down, in order.
///
/// Any thread.
final class Record: Sendable {
  private let entries = Mutex<[String]>([])

  func write(_ entry: String) { entries.withLock { $0.append(entry) } }

  /// All entries in order.
  var lines: [String] { entries.withLock { $0 } }

  /// How many entries there are.
  var count: Int { entries.withLock { $0.count } }

  /// All entries with one space between, or `none`.
  var text: String {
    let lines = lines
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }

  /// The text so far; the record begins anew.
  func take() -> String {
    let lines = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    return lines.isEmpty ? "none" : lines.joined(separator: " ")
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets

/// The addresses that were found lately.
///
/// The loader's thread.
struct NameCache {
  private struct Entry {
    var addresses: [SocketAddress]
    var end: Tick
  }

  /// For how long an answer is believed, and how many are kept.
  static let (lifetime, limit): (Duration, Int) = (.seconds(60), 256)

  private var entries: [String: Entry] = [:]

  func find(_ host: String, _ port: UInt16, now: Tick) -> [SocketAddress]? {
    guard let entry = entries["\(host):\(port)"], entry.end > now else { return nil }
    return entry.addresses
  }

  /// Forgets addresses at which nobody could be reached.
  mutating func forget(_ host: String, _ port: UInt16) { entries["\(host):\(port)"] = nil }

  mutating func note(_ host: String, _ port: UInt16, _ addresses: [SocketAddress], now: Tick) {
    if entries.count >= Self.limit { entries = entries.filter { $0.value.end > now } }
    if entries.count >= Self.limit { entries = [:] }
    entries["\(host):\(port)"] = Entry(addresses: addresses, end: now + Int64(saturating: Self.lifetime))
  }
}

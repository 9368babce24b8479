// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets

/// A cache of recent name lookups, used only on the loader's thread.
struct NameCache {
  private struct Entry {
    var addresses: [SocketAddress]
    var end: Tick
  }

  /// How long a result is used, and how many results are kept.
  static let (lifetime, limit): (Duration, Int) = (.seconds(60), 256)

  private var entries: [String: Entry] = [:]

  func find(_ host: String, _ port: UInt16, now: Tick) -> [SocketAddress]? {
    guard let entry = entries["\(host):\(port)"], entry.end > now else { return nil }
    return entry.addresses
  }

  mutating func forget(_ host: String, _ port: UInt16) { entries["\(host):\(port)"] = nil }

  mutating func note(_ host: String, _ port: UInt16, _ addresses: [SocketAddress], now: Tick) {
    if entries.count >= Self.limit { entries = entries.filter { $0.value.end > now } }
    if entries.count >= Self.limit { entries = [:] }
    entries["\(host):\(port)"] = Entry(addresses: addresses, end: now + Int64(saturating: Self.lifetime))
  }
}

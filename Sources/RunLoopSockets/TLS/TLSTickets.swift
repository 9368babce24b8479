// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import RunLoopCore

/// The session tickets for resuming clients' connections, keyed by server name.
///
/// Each ticket is used only once, so that it cannot be used to link a client's connections. Only the tickets of the
/// most recently used servers are kept.
final class TLSTickets: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  static let serverLimit = 64
  static let limitOfServer = 4

  private let lock = Lock()
  private var tickets: [String: [OpaquePointer]] = [:]
  /// The server names, with the most recently used one last.
  private var names: [String] = []

  deinit { for ticket in tickets.values.joined() { cos_ticket_free(ticket) } }

  /// Stores a ticket, and frees those beyond the limits.
  func put(_ ticket: OpaquePointer, for name: String) {
    var dropped: [OpaquePointer] = []
    lock.withLock {
      names.removeAll { $0 == name }
      names.append(name)
      tickets[name, default: []].append(ticket)
      if let first = tickets[name]?.first, tickets[name]?.count ?? 0 > Self.limitOfServer {
        tickets[name]?.removeFirst()
        dropped.append(first)
      }
      if names.count > Self.serverLimit { dropped += tickets.removeValue(forKey: names.removeFirst()) ?? [] }
    }
    for ticket in dropped { cos_ticket_free(ticket) }
  }

  /// Removes and returns the newest ticket, which the caller then owns.
  func take(for name: String) -> OpaquePointer? { lock.withLock { tickets[name]?.popLast() } }

  var count: Int { lock.withLock { tickets.values.reduce(0) { $0 + $1.count } } }
}

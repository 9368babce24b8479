// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import RunLoopCore

/// What resumes connections of clients, by the server's name.
///
/// Each ticket is used once, so that nobody can recognize a client by it. There are few: those of the servers that were
/// connected to last.
final class TLSTickets: @unchecked Sendable {
  // Sendable: guarded by the lock.

  static let serverLimit = 64
  static let limitOfServer = 4

  private let lock = Lock()
  private var tickets: [String: [OpaquePointer]] = [:]
  /// The names, that of the server that was connected to last behind the others.
  private var names: [String] = []

  deinit { for ticket in tickets.values.joined() { cos_ticket_free(ticket) } }

  /// Keeps a ticket, and frees what there is no room for.
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

  /// Takes the newest ticket, which is the caller's.
  func take(for name: String) -> OpaquePointer? { lock.withLock { tickets[name]?.popLast() } }

  /// How many there are.
  var count: Int { lock.withLock { tickets.values.reduce(0) { $0 + $1.count } } }
}

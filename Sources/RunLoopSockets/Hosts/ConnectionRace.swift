// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state machine that decides when to try which address of a host (RFC 8305, "happy eyeballs"), as a value whose
/// events are mutating functions that return the action to take.
struct ConnectionRace {
  enum Action: Equatable {
    /// Start connecting to the address with this index, and start the delay timer.
    case begin(Int)
    /// Wait for the next event.
    case wait
    case fail
  }

  private(set) var attempts: [HostConnectionError.Attempt]
  private var next = 0
  private var isOver = false

  /// The maximum number of addresses tried per host, because a name server can return any number.
  static let limit = 32

  init(_ addresses: [SocketAddress]) {
    attempts = Self.interleaved(addresses).prefix(Self.limit).map {
      HostConnectionError.Attempt(address: $0, outcome: .notTried)
    }
  }

  /// Returns the addresses in the order in which they are tried: alternating between families, starting with the
  /// family of the first, and within each family in the system's order of preference.
  static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let family = addresses.first?.family else { return [] }
    let preferred = addresses.filter { $0.family == family }
    let others = addresses.filter { $0.family != family }
    var order: [SocketAddress] = []
    for index in 0..<max(preferred.count, others.count) {
      if index < preferred.count { order.append(preferred[index]) }
      if index < others.count { order.append(others[index]) }
    }
    return order
  }

  var hasMore: Bool { !isOver && next < attempts.count }

  /// Starts the race, or continues when the delay after the last attempt has passed.
  mutating func goOn() -> Action {
    guard hasMore else { return .wait }
    attempts[next].outcome = .connecting
    next += 1
    return .begin(next - 1)
  }

  /// Records that an attempt has failed; the next one starts at once.
  mutating func failed(_ index: Int, _ error: SocketError) -> Action {
    guard !isOver else { return .wait }
    guard attempts[index].outcome == .connecting else {
      fatalError("attempt \(index) of a connection has failed that is \(attempts[index].outcome)")
    }
    attempts[index].outcome = .failed(error)
    if hasMore { return goOn() }
    guard attempts.contains(where: { $0.outcome == .connecting }) else {
      isOver = true
      return .fail
    }
    return .wait
  }

  /// Ends the race when it is won, cancelled or timed out, or returns false if it was already over.
  mutating func end() -> Bool {
    defer { isOver = true }
    return !isOver
  }
}

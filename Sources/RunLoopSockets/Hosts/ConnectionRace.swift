// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Which of a host's addresses is tried when, as a value (RFC 8305, "happy eyeballs"): each event is a mutating
/// function that returns what is to be done.
struct ConnectionRace {
  enum Action: Equatable {
    /// Begin to connect to the address of this index, and report when the delay has passed.
    case begin(Int)
    /// Wait for what comes.
    case wait
    /// All addresses have failed.
    case fail
  }

  private(set) var attempts: [HostConnectionError.Attempt]
  private var next = 0
  private var isOver = false

  /// How many addresses of a host are tried: what a name server answers is bounded by nothing.
  static let limit = 32

  init(_ addresses: [SocketAddress]) {
    attempts = Self.interleaved(addresses).prefix(Self.limit).map {
      HostConnectionError.Attempt(address: $0, outcome: .notTried)
    }
  }

  /// The addresses in the order in which they are tried: the families take turns, beginning with that of the first,
  /// each in the order that the system prefers.
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

  /// Whether there are addresses that were not tried.
  var hasMore: Bool { !isOver && next < attempts.count }

  /// The race begins, or the delay after the last attempt has passed.
  mutating func goOn() -> Action {
    guard hasMore else { return .wait }
    attempts[next].outcome = .connecting
    next += 1
    return .begin(next - 1)
  }

  /// An attempt has failed: the next begins at once.
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

  /// It is won, cancelled, or out of time; true if it was not over before.
  mutating func end() -> Bool {
    defer { isOver = true }
    return !isOver
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a remote port knows of its messages.
///
/// A value, guarded by the port's lock.
struct RemoteState {
  /// Why the port is invalid; nil: it is not.
  var end: MessagePortError?
  var lastToken: UInt64 = 0
  var pending = PendingRequests()
  /// One that was used and may be again.
  var spareWaiter: ReplyWaiter?
  var unconfirmed = UnconfirmedMessages()
  /// Whether messages were reported when the port ended.
  var hasLostMessages = false
  /// The rejected messages that are to be reported, and whether a thread is reporting one.
  var rejected: [MessagePort.Undelivered] = []
  var isReporting = false
  /// Whether a thread reads the socket; there is one at a time.
  var isReading = false
  /// How many threads wait for the reading thread.
  var followers = 0
  var statistics = MessagePort.Remote.Statistics()
  var registrations = MessagePortRegistrations()
  var observers = InvalidationList<MessagePort.Remote.InvalidationObserver>()

  /// Somebody for a thread that blocks.
  mutating func takeWaiter() -> ReplyWaiter { spareWaiter.take() ?? ReplyWaiter() }

  /// Takes a message in that is about to be sent, and returns its token; replies may come before the call returns.
  mutating func register(id: Int32, _ waiter: ReplyWaiter?) -> UInt64 {
    lastToken += 1
    if let waiter {
      waiter.token = lastToken
      pending.append(waiter)
    } else {
      unconfirmed.append(token: lastToken, id: id)
    }
    return lastToken
  }

  /// Takes the last message out again, which was not sent.
  mutating func unregister(_ token: UInt64, _ waiter: ReplyWaiter?) {
    lastToken -= 1
    if waiter != nil { pending.remove(token) } else { unconfirmed.removeLast(token) }
  }
}

/// The requests whose replies are awaited, in the order of their tokens, which is that in which most replies come.
struct PendingRequests {
  private var waiters: [ReplyWaiter] = []

  var count: Int { waiters.count }
  var isEmpty: Bool { waiters.isEmpty }

  /// Takes in the newest.
  mutating func append(_ waiter: ReplyWaiter) { waiters.append(waiter) }

  /// Takes one out; nil if it is not here.
  ///
  /// O(log n), and what is newer moves up.
  @discardableResult
  mutating func remove(_ token: UInt64) -> ReplyWaiter? {
    var (low, high) = (0, waiters.count)
    if high > 0, waiters[0].token == token { return waiters.remove(at: 0) }
    while low < high {
      let middle = (low + high) / 2
      if waiters[middle].token < token { low = middle + 1 } else { high = middle }
    }
    guard low < waiters.count, waiters[low].token == token else { return nil }
    return waiters.remove(at: low)
  }

  /// Takes all out.
  mutating func removeAll() -> [ReplyWaiter] {
    defer { waiters = [] }
    return waiters
  }
}

/// The one-way messages that the receiver has not confirmed, in order.
struct UnconfirmedMessages {
  typealias Entry = (token: UInt64, id: Int32)

  /// How many there may be: a sender waits for the receiver then.
  static let limit = 1024

  private var entries: [Entry] = []
  private var first = 0

  var count: Int { entries.count - first }

  mutating func append(token: UInt64, id: Int32) { entries.append((token, id)) }

  /// Takes the last out, if it is this one.
  mutating func removeLast(_ token: UInt64) {
    if count > 0, entries[entries.count - 1].token == token { entries.removeLast() }
  }

  /// Takes all out up to a token, and returns their number.
  ///
  /// O(n) in what is taken out, amortised.
  mutating func confirm(upTo token: UInt64) -> Int {
    let before = first
    while first < entries.count, entries[first].token <= token { first += 1 }
    let confirmed = first - before
    if first == entries.count {
      entries.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= Self.limit {
      entries.removeFirst(first)
      first = 0
    }
    return confirmed
  }

  /// Takes one out; nil if it is not here.
  ///
  /// O(n).
  mutating func remove(_ token: UInt64) -> Entry? {
    guard let index = entries[first...].firstIndex(where: { $0.token == token }) else { return nil }
    return entries.remove(at: index)
  }

  /// Takes all out.
  mutating func removeAll() -> [Entry] {
    defer {
      entries = []
      first = 0
    }
    return Array(entries[first...])
  }
}

/// Somebody who waits for a reply.
///
/// A thread that blocks uses one again that nobody uses any more.
final class ReplyWaiter: @unchecked Sendable {
  // Sendable: the variables are guarded by the port's lock.
  typealias Outcome = Result<MessagePort.Reply?, MessagePortError>

  /// The request's; 0: it was not sent yet.
  var token: UInt64 = 0
  var outcome: Outcome?
  /// Notifies whoever waits that there is an outcome; nil for a thread that blocks, which is notified by the port's
  /// word.
  var wake: (@Sendable (Outcome) -> Void)?

  /// Gives the outcome, once.
  func takeOutcome() -> Outcome? {
    guard outcome != nil else { return nil }
    return outcome.take()
  }
}

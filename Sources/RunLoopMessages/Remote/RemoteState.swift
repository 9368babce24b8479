// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state of a remote port and its messages, as a value guarded by the port's lock.
struct RemoteState {
  /// The reason why the port is invalid, or `nil` if it is valid.
  var end: MessagePortError?
  var lastToken: UInt64 = 0
  var pending = PendingRequests()
  /// A waiter that can be reused.
  var spareWaiter: ReplyWaiter?
  var unconfirmed = UnconfirmedMessages()
  /// Whether messages were reported when the port ended.
  var hasLostMessages = false
  /// The rejected messages still to be reported, and whether a thread is reporting one.
  var rejected: [MessagePort.Undelivered] = []
  var isReporting = false
  /// Whether a thread is reading the socket; only one does at a time.
  var isReading = false
  /// The number of threads that are waiting for the reading thread.
  var followers = 0
  var statistics = MessagePort.Remote.Statistics()
  var registrations = MessagePortRegistrations()
  var observers = InvalidationList<MessagePort.Remote.InvalidationObserver>()

  mutating func takeWaiter() -> ReplyWaiter { spareWaiter.take() ?? ReplyWaiter() }

  /// Registers a message that is about to be sent, and returns its token; a reply may arrive before the call returns.
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

  /// Unregisters the last message, which was not sent.
  mutating func unregister(_ token: UInt64, _ waiter: ReplyWaiter?) {
    lastToken -= 1
    if waiter != nil { pending.remove(token) } else { unconfirmed.removeLast(token) }
  }
}

/// The pending requests, in the order of their tokens, which is also the order of most replies.
struct PendingRequests {
  private var waiters: [ReplyWaiter] = []

  var count: Int { waiters.count }
  var isEmpty: Bool { waiters.isEmpty }

  mutating func append(_ waiter: ReplyWaiter) { waiters.append(waiter) }

  /// Removes a request, or returns `nil` if it is not pending.
  ///
  /// - Complexity: O(log *n*), plus moving the newer requests.
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

  mutating func removeAll() -> [ReplyWaiter] {
    defer { waiters = [] }
    return waiters
  }
}

/// The one-way messages that the receiver has not confirmed, in order.
struct UnconfirmedMessages {
  typealias Entry = (token: UInt64, id: Int32)

  /// The maximum number of unconfirmed messages, at which a sender waits for the receiver.
  static let limit = 1024

  private var entries: [Entry] = []
  private var first = 0

  var count: Int { entries.count - first }

  mutating func append(token: UInt64, id: Int32) { entries.append((token, id)) }

  /// Removes the last message if it has this token.
  mutating func removeLast(_ token: UInt64) {
    if count > 0, entries[entries.count - 1].token == token { entries.removeLast() }
  }

  /// Removes all messages up to a token, and returns their number.
  ///
  /// - Complexity: Amortized O(*n*) in the number of messages removed.
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

  /// Removes a message, or returns `nil` if it is not here.
  ///
  /// - Complexity: O(*n*).
  mutating func remove(_ token: UInt64) -> Entry? {
    guard let index = entries[first...].firstIndex(where: { $0.token == token }) else { return nil }
    return entries.remove(at: index)
  }

  mutating func removeAll() -> [Entry] {
    defer {
      entries = []
      first = 0
    }
    return Array(entries[first...])
  }
}

/// A thread or task that is waiting for a reply, reused by blocking threads.
final class ReplyWaiter: @unchecked Sendable {
  // Sendable: the port's lock guards the variables while the request is registered. Only the requesting thread uses
  // them before that, and `token` does not change afterwards.
  typealias Outcome = Result<MessagePort.Reply?, MessagePortError>

  /// The request's token, or 0 if it was not sent yet.
  var token: UInt64 = 0
  var outcome: Outcome?
  /// Called when there is an outcome; `nil` for a blocking thread, which is woken through the port's word.
  var wake: (@Sendable (Outcome) -> Void)?

  /// Removes and returns the outcome.
  func takeOutcome() -> Outcome? {
    guard outcome != nil else { return nil }
    return outcome.take()
  }
}

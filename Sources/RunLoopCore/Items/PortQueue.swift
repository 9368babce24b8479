// SPDX-License-Identifier: Apache-2.0

extension Port {
  /// What happens to a message that is sent to a port whose queue is full.
  public enum OverflowPolicy: Sendable, Hashable {
    /// The sender waits for room until its deadline; without a deadline, or when that has passed, it gets an error.
    case wait
    /// The sender gets an error at once, whatever its deadline.
    case reject
    /// The oldest waiting message is dropped, and is counted in ``PortMembers/droppedMessageCount``.
    case dropOldest
  }
}

/// The messages that wait in a port, and the number of senders that wait for room: a value behind the port's lock.
struct PortQueue: ~Copyable {
  let limit: Int
  let policy: Port.OverflowPolicy
  private var messages = MoveQueue<Port.Message>()
  private var isClosed = false
  /// How many senders wait for room.
  private(set) var waiting = 0
  /// How many messages will never be received.
  private(set) var dropped = 0
  /// How many messages have left the queue, received or not.
  private var gone: UInt64 = 0

  init(limit: Int, policy: Port.OverflowPolicy) {
    self.limit = max(1, limit)
    self.policy = policy
  }

  var count: Int { messages.count }
  var isEmpty: Bool { messages.isEmpty }
  /// The number of the last message that was queued, among all.
  var lastNumber: UInt64 { gone &+ UInt64(truncatingIfNeeded: messages.count) }

  /// The outcome for one more message.
  enum Offer {
    /// It waits for a receiver.
    case taken
    /// It waits for a receiver in the place of this one, which is dropped.
    case replaces(Port.Message)
    /// There is no room; `mayWait` says whether the sender may wait.
    case full(mayWait: Bool)
    /// There will be no receiver.
    case closed
  }

  /// Takes a message, if there is room or room can be made.
  @inline(__always)
  mutating func offer(_ message: Port.Message) -> Offer {
    guard !isClosed else { return .closed }
    guard messages.count == limit else {
      messages.append(message)
      return .taken
    }
    guard policy == .dropOldest else { return .full(mayWait: policy == .wait) }
    dropped += 1
    gone &+= 1
    let oldest = messages.takeFirst()
    messages.append(message)
    return .replaces(oldest)
  }

  /// Takes the first message out, with its number; nil if there is none.
  @inline(__always)
  mutating func takeFirst() -> (message: Port.Message, number: UInt64)? {
    guard !messages.isEmpty else { return nil }
    gone &+= 1
    return (messages.takeFirst(), gone)
  }

  /// Notes that a sender begins to wait for room, or ends its wait.
  mutating func beginWait() { waiting += 1 }
  mutating func endWait() { waiting -= 1 }

  /// Counts a message that was taken out but could not be delivered to its receiver.
  mutating func noteDropped() { dropped += 1 }

  /// Closes the queue, and moves the waiting messages to `remains`, which the caller releases outside the lock.
  mutating func close(_ remains: inout MoveQueue<Port.Message>) {
    precondition(!isClosed && remains.isEmpty, "a port's queue is closed once")
    isClosed = true
    dropped += messages.count
    swap(&messages, &remains)
  }
}

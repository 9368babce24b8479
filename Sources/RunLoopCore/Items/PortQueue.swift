// SPDX-License-Identifier: Apache-2.0

extension Port {
  /// The handling of a message that is sent to a port whose queue is full.
  public enum OverflowPolicy: Sendable, Hashable {
    /// The sender waits for room until its deadline; without a deadline, or after it, the sender receives an error.
    case wait
    /// The sender receives an error immediately, whatever its deadline.
    case reject
    /// The oldest queued message is dropped, and counted in ``PortMembers/droppedMessageCount``.
    case dropOldest
  }
}

/// A port's queued messages and the number of senders waiting for room, guarded by the port's lock.
struct PortQueue: ~Copyable {
  let limit: Int
  let policy: Port.OverflowPolicy
  private var messages = MoveQueue<Port.Message>()
  private var isClosed = false
  /// The number of senders waiting for room.
  private(set) var waiting = 0
  /// The number of messages that will never be received.
  private(set) var dropped = 0
  /// The number of messages that have left the queue, whether received or not.
  private var gone: UInt64 = 0

  init(limit: Int, policy: Port.OverflowPolicy) {
    self.limit = max(1, limit)
    self.policy = policy
  }

  var count: Int { messages.count }
  var isEmpty: Bool { messages.isEmpty }
  /// The number, counted over the port's lifetime, of the last message queued.
  var lastNumber: UInt64 { gone &+ UInt64(truncatingIfNeeded: messages.count) }

  /// The outcome of offering a message to the queue.
  enum Offer {
    /// The message was queued.
    case taken
    /// The message was queued, and the given oldest message was dropped.
    case replaces(Port.Message)
    /// The queue is full; `mayWait` is whether the sender may wait for room.
    case full(mayWait: Bool)
    /// The queue is closed.
    case closed
  }

  /// Queues a message if there is room or if room can be made.
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

  /// Removes and returns the first message and its number, or `nil` if the queue is empty.
  @inline(__always)
  mutating func takeFirst() -> (message: Port.Message, number: UInt64)? {
    guard !messages.isEmpty else { return nil }
    gone &+= 1
    return (messages.takeFirst(), gone)
  }

  /// Notes that a sender begins or ends waiting for room.
  mutating func beginWait() { waiting += 1 }
  mutating func endWait() { waiting -= 1 }

  /// Counts a message that was taken from the queue but could not be delivered.
  mutating func noteDropped() { dropped += 1 }

  /// Closes the queue, and moves its messages to `remains`, which the caller releases after the lock.
  mutating func close(_ remains: inout MoveQueue<Port.Message>) {
    precondition(!isClosed && remains.isEmpty, "a port's queue is closed once")
    isClosed = true
    dropped += messages.count
    swap(&messages, &remains)
  }
}

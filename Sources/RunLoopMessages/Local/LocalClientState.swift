// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// The state of a connection to a local port, as a value guarded by the connection's lock.
struct LocalClientState {
  /// A queued message, and the owners of its descriptors.
  typealias Outgoing = (content: MessageContent, owners: [MessagePort.Descriptor])

  var isClosed = false
  /// Whether a thread is serving the connection; only one does at a time.
  var isServing = false
  /// The events that the epoll set reports, or `nil` if a one-shot event has disarmed it.
  var armed: UInt32? = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
  /// Whether the other end has hung up, possibly with messages left to read.
  var isHungUp = false
  /// Whether queued replies wait for the receiver to read earlier ones, rather than for room in the socket.
  var isHeldBack = false
  var hasSpoken = false
  /// The bytes of unfinished messages and of queued replies.
  var unfinishedBytes = 0
  var waitingBytes = 0
  /// The queued messages, or `nil` for those that were removed; bounded, because no more is read while the queue is
  /// long.
  private var outgoing: [Outgoing?] = []
  private var firstOutgoing = 0
  /// The number of messages that were received but are not finished.
  var unfinished = 0
  /// The last received one-way message, and the last one that was confirmed.
  var received: UInt64 = 0
  var confirmed: UInt64 = 0
  /// Whether the confirmation is postponed until the waiting messages were read.
  var confirmsLater = false

  var waiting: Int { outgoing.count - firstOutgoing }

  func mayRead(limit: Int, bytes: Int) -> Bool {
    !isClosed && !isHeldBack && unfinished + waiting < limit && unfinishedBytes < bytes && waitingBytes < bytes
  }

  mutating func append(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    waitingBytes += content.amount.outgoing
    outgoing.append((content, owners))
  }

  var next: MessageContent? { waiting > 0 ? outgoing[firstOutgoing]?.content : nil }

  /// Removes the first queued message, and returns its descriptors' owners, to be released without the lock.
  ///
  /// - Complexity: Amortized O(1).
  mutating func removeNext() -> [MessagePort.Descriptor] {
    guard waiting > 0, let taken = outgoing[firstOutgoing].take() else { return [] }
    waitingBytes -= taken.content.amount.outgoing
    firstOutgoing += 1
    if waiting == 0 {
      outgoing.removeAll()
      firstOutgoing = 0
    } else if firstOutgoing >= 64, firstOutgoing * 2 >= outgoing.count {
      outgoing.removeFirst(firstOutgoing)
      firstOutgoing = 0
    }
    return taken.owners
  }

  /// Removes all queued messages, to be released without the lock.
  mutating func removeWaiting() -> [Outgoing] {
    let taken = outgoing[firstOutgoing...].compactMap { $0 }
    outgoing = []
    firstOutgoing = 0
    waitingBytes = 0
    return taken
  }
}

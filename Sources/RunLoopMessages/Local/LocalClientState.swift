// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// What a local port knows of one connection.
///
/// A value, guarded by the connection's lock.
struct LocalClientState {
  /// A message that waits, and who keeps its descriptors.
  typealias Outgoing = (content: MessageContent, owners: [MessagePort.Descriptor])

  /// Whether nothing is sent any more.
  var isClosed = false
  /// Whether a thread reads; there is one at a time.
  var isServing = false
  /// What the epoll set reports of it; nil: nothing, an event that is reported once has been.
  var armed: UInt32? = EPOLLIN.rawValue | EPOLLRDHUP.rawValue
  /// Whether the other end has hung up, with messages left to read.
  var isHungUp = false
  /// Whether what waits does so until the receiver has taken what was sent, and not for room in the socket.
  var isHeldBack = false
  /// Whether a message has been received.
  var hasSpoken = false
  /// The bytes of the messages that are not finished, and of the replies that wait.
  var unfinishedBytes = 0
  var waitingBytes = 0
  /// What could not be sent yet; bounded, since no more is read while this is long (nil: taken out).
  private var outgoing: [Outgoing?] = []
  private var firstOutgoing = 0
  /// How many messages were received and not finished.
  var unfinished = 0
  /// The one-way message up to which all have been received, and up to which the sender knows it.
  var received: UInt64 = 0
  var confirmed: UInt64 = 0
  /// Whether what was received is confirmed with what lies there to be read.
  var confirmsLater = false

  /// How many replies wait.
  var waiting: Int { outgoing.count - firstOutgoing }

  /// Whether one more message may be read.
  func mayRead(limit: Int, bytes: Int) -> Bool {
    !isClosed && !isHeldBack && unfinished + waiting < limit && unfinishedBytes < bytes && waitingBytes < bytes
  }

  mutating func append(_ content: MessageContent, _ owners: [MessagePort.Descriptor]) {
    waitingBytes += content.amount.outgoing
    outgoing.append((content, owners))
  }

  /// The first that waits.
  var next: MessageContent? { waiting > 0 ? outgoing[firstOutgoing]?.content : nil }

  /// Takes out the first that waits, and returns its descriptors' owners, to be released without the lock.
  ///
  /// - Complexity: O(1) amortised.
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

  /// Takes out all that waits, to be released without the lock.
  mutating func removeWaiting() -> [Outgoing] {
    let taken = outgoing[firstOutgoing...].compactMap { $0 }
    outgoing = []
    firstOutgoing = 0
    waitingBytes = 0
    return taken
  }
}

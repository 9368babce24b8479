// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// What a local port knows of one connection.
///
/// A value, guarded by the connection's lock.
struct LocalClientState {
  /// Whether nothing is sent any more.
  var isClosed = false
  /// Whether a thread reads; there is one at a time.
  var isServing = false
  /// What the epoll set tells of it; nil: nothing, an event that is told once has been.
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
  /// What could not be sent yet; bounded, since no more is read while this is long.
  var outgoing: [MessageContent] = []
  var firstOutgoing = 0
  /// Who keeps the descriptors of what could not be sent yet.
  var outgoingOwners: [[MessagePort.Descriptor]] = []
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
    outgoing.append(content)
    outgoingOwners.append(owners)
  }

  /// The first that waits.
  var next: MessageContent? { waiting > 0 ? outgoing[firstOutgoing] : nil }

  /// Takes out the first that waits, and gives its descriptors' owners.
  mutating func removeNext() -> [MessagePort.Descriptor] {
    waitingBytes -= outgoing[firstOutgoing].amount.outgoing
    let owners = outgoingOwners[firstOutgoing]
    outgoingOwners[firstOutgoing] = []
    firstOutgoing += 1
    if waiting == 0 {
      outgoing.removeAll()
      outgoingOwners.removeAll()
      firstOutgoing = 0
    }
    return owners
  }
}

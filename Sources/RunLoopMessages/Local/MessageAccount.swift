// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// The resources that connections use of a local port, and their limits, either for all connections or for those of
/// one other user.
///
/// A user's charges are also charged to the port's account, or rejected if they do not fit there. Replies that carry
/// memory or descriptors stay charged until the kernel reports that the receiver has read them, which is checked when
/// there is no room.
final class MessageAccount: @unchecked Sendable {
  // Sendable: the lock guards all mutable state. An account's lock is taken before that of the account above it.

  struct Amount: Sendable {
    var connections = 0
    var incoming = 0
    /// The bytes of replies that the receiver has not read.
    var outgoing = 0
    /// The descriptors of messages and replies.
    var descriptors = 0
    var rejected = 0

    static func += (left: inout Amount, right: Amount) {
      left.connections += right.connections
      left.incoming += right.incoming
      left.outgoing += right.outgoing
      left.descriptors += right.descriptors
      left.rejected += right.rejected
    }

    static func -= (left: inout Amount, right: Amount) {
      left.connections -= right.connections
      left.incoming -= right.incoming
      left.outgoing -= right.outgoing
      left.descriptors -= right.descriptors
      left.rejected -= right.rejected
    }

    func hasRoom(for more: Amount, upTo limit: Amount) -> Bool {
      (more.incoming == 0 || more.incoming <= limit.incoming - incoming)
        && (more.outgoing == 0 || more.outgoing <= limit.outgoing - outgoing)
        && (more.descriptors == 0 || more.descriptors <= limit.descriptors - descriptors)
        && (more.connections == 0 || more.connections <= limit.connections - connections)
        && (more.rejected == 0 || more.rejected <= limit.rejected - rejected)
    }
  }

  private let limit: Amount
  private let above: MessageAccount?
  /// The closer of descriptors that are charged here, or `nil` for the default closer.
  let closer: DescriptorCloser?
  private let lock = ProcessLock()
  @exclusivity(unchecked) private var used = Amount()
  /// The port's counters, in the account of all connections, so that a message is charged and counted in one step.
  @exclusivity(unchecked) private var counted = MessagePort.Local.Statistics()
  private var unread: [UInt64: UnreadReplies] = [:]

  init(_ limit: Amount, above: MessageAccount? = nil) {
    self.limit = limit
    self.above = above
    closer = above == nil ? nil : DescriptorCloser()
  }

  var now: Amount { lock.withLock { used } }

  var isUnused: Bool {
    let now = now
    return now.connections == 0 && now.incoming == 0 && now.outgoing == 0 && now.descriptors == 0 && now.rejected == 0
  }

  var isFullOfRejected: Bool { lock.withLock { used.rejected >= limit.rejected } }

  @inline(__always)
  func change(_ body: (inout MessagePort.Local.Statistics) -> Void) {
    lock.lock()
    body(&counted)
    lock.unlock()
  }

  var statistics: MessagePort.Local.Statistics { lock.ifOwned(else: .init()) { counted } }

  /// Charges an amount to the port's account and optionally counts a received message, or returns false if there is no
  /// room.
  func take(_ amount: Amount, counts: Bool) -> Bool {
    lock.lock()
    guard used.hasRoom(for: amount, upTo: limit) else {
      lock.unlock()
      guard take(amount) else { return false }
      if counts { change { $0.receivedCount += 1 } }
      return true
    }
    used += amount
    if counts { counted.receivedCount += 1 }
    lock.unlock()
    return true
  }

  /// Charges an amount, or returns false if there is no room.
  func take(_ amount: Amount) -> Bool {
    if takeOnce(amount) { return true }
    // Receivers may have read replies that are still charged.
    guard amount.incoming == 0 || amount.descriptors > 0 else { return false }
    noteReading()
    above?.noteReading()
    return takeOnce(amount)
  }

  private func takeOnce(_ amount: Amount) -> Bool {
    lock.lock()
    guard used.hasRoom(for: amount, upTo: limit), above?.takeOnce(amount) ?? true else {
      lock.unlock()
      return false
    }
    used += amount
    lock.unlock()
    return true
  }

  /// Releases an amount, and changes the counters of the port's account.
  @inline(__always)
  func release(_ amount: Amount, _ count: (inout MessagePort.Local.Statistics) -> Void = { _ in }) {
    guard lock.lockUnlessParents() else { return }
    used -= amount
    guard let above else {
      count(&counted)
      return lock.unlock()
    }
    lock.unlock()
    above.releaseAll(amount, count)
  }

  /// Releases an amount in the port's account, and changes its counters.
  private func releaseAll(_ amount: Amount, _ count: (inout MessagePort.Local.Statistics) -> Void) {
    lock.lock()
    used -= amount
    count(&counted)
    lock.unlock()
  }

  // MARK: - Unread replies

  /// Returns whether a reply that carries memory or descriptors may be sent now, which depends on how many are unread.
  func maySend(_ amount: Amount, on key: UInt64) -> Bool {
    guard var replies = lock.withLock({ unread.removeValue(forKey: key) }) else { return true }
    let read = replies.takeRead()
    let answer = replies.hasRoom(for: amount)
    if !replies.isEmpty { lock.withLock { unread[key] = replies } }
    release(read)
    return answer
  }

  /// Records that a charged reply was sent; the charge is released when the receiver has read it.
  func noteSent(_ amount: Amount, bytes: Int, on key: UInt64, _ socket: MessagePort.Descriptor) {
    lock.withLock {
      unread[key, default: UnreadReplies(socket)].append(amount, bytes: bytes)
    }
  }

  /// Releases the charges of replies that the receiver of a closed connection has read.
  ///
  /// Unread replies stay charged, and the socket stays open, as long as the kernel keeps them.
  func noteReading(of key: UInt64) {
    guard lock.withLock({ unread[key] != nil }) else { return }
    noteReading()
  }

  func end() {
    lock.lock()
    let all = unread
    unread = [:]
    lock.unlock()
    withExtendedLifetime(all) {}
  }

  /// Releases the charges of replies that receivers have read since.
  ///
  /// - Complexity: O(*n*) in the number of connections with unread replies.
  func noteReading() {
    var read = Amount()
    var gone: [UnreadReplies] = []
    lock.lock()
    for key in unread.keys {
      guard var replies = unread[key] else { continue }
      read += replies.takeRead()
      unread[key] = replies.isEmpty ? nil : replies
      // Releasing this may close its socket, which must not be done with the lock held.
      if replies.isEmpty { gone.append(replies) }
    }
    used -= read
    lock.unlock()
    above?.release(read)
    withExtendedLifetime(gone) {}
  }
}

/// The replies of a connection that its other end may not have read yet, in order.
struct UnreadReplies {
  private struct Entry {
    let amount: MessageAccount.Amount
    /// The number of bytes sent before the reply.
    let start: Int
  }

  /// The maximum bytes and descriptors of unread replies per receiver, unless a single reply exceeds it.
  private static let limit = MessageAccount.Amount(outgoing: 32 << 20, descriptors: 16)
  /// The minimum memory that the kernel uses for a packet besides its bytes.
  private static let overhead = 256

  private let socket: MessagePort.Descriptor
  private var entries: [Entry] = []
  private var sent = 0
  private var sum = MessageAccount.Amount()

  init(_ socket: MessagePort.Descriptor) { self.socket = socket }

  var isEmpty: Bool { entries.isEmpty }

  func hasRoom(for amount: MessageAccount.Amount) -> Bool { isEmpty || sum.hasRoom(for: amount, upTo: Self.limit) }

  /// Adds a reply whose packet has the given number of bytes.
  mutating func append(_ amount: MessageAccount.Amount, bytes: Int) {
    entries.append(Entry(amount: amount, start: sent))
    sent += bytes + Self.overhead
    sum += amount
  }

  /// Removes the replies that the receiver has certainly read, and returns their amount.
  ///
  /// The unread packets are the last ones. The kernel reports their memory, which is more than their bytes, so a
  /// packet has been read if it and the packets after it have more bytes than that.
  mutating func takeRead() -> MessageAccount.Amount {
    var read = MessageAccount.Amount()
    guard !entries.isEmpty else { return read }
    let unread = Int(crl_message_unread(socket.number))
    guard unread >= 0 else { return read }
    var count = 0
    for entry in entries {
      guard sent - entry.start > unread else { break }
      read += entry.amount
      count += 1
    }
    entries.removeFirst(count)
    sum -= read
    return read
  }
}

/// A charge that is released when this object is deinitialized.
final class MessageCharge: Sendable {
  private let account: MessageAccount
  private let amount: MessageAccount.Amount

  init(_ amount: MessageAccount.Amount, to account: MessageAccount) {
    self.amount = amount
    self.account = account
  }

  /// The closer of the charged descriptors, or `nil` for the default closer.
  var closer: DescriptorCloser? { account.closer }

  deinit { account.release(amount) }
}

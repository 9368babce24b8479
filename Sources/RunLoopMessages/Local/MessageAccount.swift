// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// What somebody's connections cost a local port, and how much they may: all of them, or those of one other user.
///
/// A charge is also one of the account above, and is taken there or not at all. Replies that carry memory or
/// descriptors stay charged until the receiver has taken them from its socket, as the kernel says; that is looked at
/// when there is no room.
final class MessageAccount: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock. The lock of an account is taken before that of the one above.

  /// What is charged.
  struct Amount: Sendable {
    var connections = 0
    /// The bytes of messages that were received and are not finished.
    var incoming = 0
    /// The bytes of replies that the receiver has not taken.
    var outgoing = 0
    /// Descriptors of messages and of replies.
    var descriptors = 0
    /// Connections that were rejected and are not closed yet.
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

    /// Whether there is room for more beside this, up to a limit.
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
  /// Who closes what is charged here; nil: the closer of everything else.
  let closer: DescriptorCloser?
  private let lock = ProcessLock()
  @exclusivity(unchecked) private var used = Amount()
  /// What has come to the port, if it is the account of all: a message is charged and counted at once.
  @exclusivity(unchecked) private var counted = MessagePort.Local.Statistics()
  private var unread: [UInt64: UnreadReplies] = [:]

  init(_ limit: Amount, above: MessageAccount? = nil) {
    self.limit = limit
    self.above = above
    closer = above == nil ? nil : DescriptorCloser()
  }

  /// What is charged now.
  var now: Amount { lock.withLock { used } }

  /// Whether nothing is charged.
  var isUnused: Bool {
    let now = now
    return now.connections == 0 && now.incoming == 0 && now.outgoing == 0 && now.descriptors == 0 && now.rejected == 0
  }

  /// Whether as many refused connections are charged as may be.
  var isFullOfRejected: Bool { lock.withLock { used.rejected >= limit.rejected } }

  /// Counts; of the account of all.
  @inline(__always)
  func change(_ body: (inout MessagePort.Local.Statistics) -> Void) {
    lock.lock()
    body(&counted)
    lock.unlock()
  }

  /// What was counted.
  var statistics: MessagePort.Local.Statistics { lock.ifOwned(else: .init()) { counted } }

  /// Charges an amount to the account of all and, if that is done, counts one more message; false: there is no room for
  /// it.
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

  /// Charges an amount; false: there is no room for it.
  func take(_ amount: Amount) -> Bool {
    if takeOnce(amount) { return true }
    // Receivers may have taken what is still charged.
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

  /// Releases an amount, and counts in the account of all.
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

  /// The same in the account of all.
  private func releaseAll(_ amount: Amount, _ count: (inout MessagePort.Local.Statistics) -> Void) {
    lock.lock()
    used -= amount
    count(&counted)
    lock.unlock()
  }

  // Replies that the receiver has yet to take.

  /// Whether a reply that carries memory or descriptors may be sent now: not while much of the kind is unread.
  func maySend(_ amount: Amount, on key: UInt64) -> Bool {
    guard var replies = lock.withLock({ unread.removeValue(forKey: key) }) else { return true }
    let read = replies.takeRead()
    let answer = replies.hasRoom(for: amount)
    if !replies.isEmpty { lock.withLock { unread[key] = replies } }
    release(read)
    return answer
  }

  /// Notes that a charged reply was sent: the charge is released when the receiver has taken it.
  func noteSent(_ amount: Amount, bytes: Int, on key: UInt64, _ socket: MessagePort.Descriptor) {
    lock.withLock {
      unread[key, default: UnreadReplies(socket)].append(amount, bytes: bytes)
    }
  }

  /// Releases what the receiver of one connection has taken, which has ended.
  ///
  /// What it has not taken stays charged, and the socket open, as long as that lies in the kernel.
  func noteReading(of key: UInt64) {
    guard lock.withLock({ unread[key] != nil }) else { return }
    noteReading()
  }

  /// Lets go of the sockets; the port has ended.
  func end() {
    lock.lock()
    let all = unread
    unread = [:]
    lock.unlock()
    withExtendedLifetime(all) {}
  }

  /// Releases what receivers have taken meanwhile.
  ///
  /// - Complexity: O(*n*) in the connections that had something to take.
  func noteReading() {
    var read = Amount()
    var gone: [UnreadReplies] = []
    lock.lock()
    for key in unread.keys {
      guard var replies = unread[key] else { continue }
      read += replies.takeRead()
      unread[key] = replies.isEmpty ? nil : replies
      // Its socket may be closed with it, which is not done under the lock.
      if replies.isEmpty { gone.append(replies) }
    }
    used -= read
    lock.unlock()
    above?.release(read)
    withExtendedLifetime(gone) {}
  }
}

/// The replies of a connection that its other end may not have taken yet, in order.
struct UnreadReplies {
  private struct Entry {
    let amount: MessageAccount.Amount
    /// What was sent before it, in bytes.
    let start: Int
  }

  /// The most bytes and descriptors on their way to one receiver, unless a single reply has more.
  private static let limit = MessageAccount.Amount(outgoing: 32 << 20, descriptors: 16)
  /// The kernel's own bytes for a packet are at least these.
  private static let overhead = 256

  private let socket: MessagePort.Descriptor
  private var entries: [Entry] = []
  private var sent = 0
  private var sum = MessageAccount.Amount()

  init(_ socket: MessagePort.Descriptor) { self.socket = socket }

  var isEmpty: Bool { entries.isEmpty }

  func hasRoom(for amount: MessageAccount.Amount) -> Bool { isEmpty || sum.hasRoom(for: amount, upTo: Self.limit) }

  /// Takes a reply in, whose packet has so many bytes.
  mutating func append(_ amount: MessageAccount.Amount, bytes: Int) {
    entries.append(Entry(amount: amount, start: sent))
    sent += bytes + Self.overhead
    sum += amount
  }

  /// Takes out what the receiver has taken for sure.
  ///
  /// What is unread are the last packets. The kernel says what they take of its memory, which is more than their bytes;
  /// so a packet has been read if it and those behind it have more bytes than that.
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

/// A charge that is released once, with this object or before.
final class MessageCharge: Sendable {
  private let account: MessageAccount
  private let amount: MessageAccount.Amount

  /// Takes over what was charged.
  init(_ amount: MessageAccount.Amount, to account: MessageAccount) {
    self.amount = amount
    self.account = account
  }

  /// Who closes what is charged, if not the closer of everything else.
  var closer: DescriptorCloser? { account.closer }

  deinit { account.release(amount) }
}

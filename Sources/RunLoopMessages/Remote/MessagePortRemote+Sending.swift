// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Remote {
  /// Sends a message and waits for no reply.
  ///
  /// It is in the kernel's hands when the call returns. While the receiver is slow, the sender waits: for room in the
  /// socket, and for the confirmation of one of 1024 messages. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - id: What the receiver knows the message by.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors of which the receiver gets copies; they stay the caller's.
  ///   - sendTimeout: How long to wait for room. Zero means not at all, and nil indefinitely. The calling thread
  ///     blocks.
  /// - Returns: The message's number, by which `undelivered` knows it.
  /// - Throws: ``MessagePortError/sendTimedOut``, ``MessagePortError/peerClosed``, ``MessagePortError/invalid``,
  ///   ``MessagePortError/messageTooLarge(_:limit:)``, ``MessagePortError/tooManyDescriptors(_:limit:)``,
  ///   ``MessagePortError/system(_:)``; the message was not sent.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortSendRequest` without a reply mode.
  ///
  /// - Complexity: O(n) in the bytes.
  @discardableResult
  public func send(
    id: Int32, bytes: [UInt8] = [], descriptors: [Int32] = [], sendTimeout: Duration? = nil
  ) throws(MessagePortError) -> UInt64 {
    let deadline = sendTimeout.map { Tick.after($0) } ?? .never
    var content = try content(.oneWay, id, bytes, descriptors)
    while true {
      switch try attempt(&content, nil) {
      case .sent(let token): return token
      case .noRoom: try awaitRoom(writable: true, until: deadline)
      case .unconfirmed: try awaitRoom(writable: false, until: deadline)
      }
    }
  }

  /// Sends a message and waits for the reply.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - id: What the receiver knows the message by.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors of which the receiver gets copies; they stay the caller's.
  ///   - sendTimeout: How long to wait for room. Nil means indefinitely.
  ///   - receiveTimeout: How long to wait for the reply then. Nil means indefinitely.
  ///   - replyMode: The mode in which the calling thread's loop runs while it waits, by that loop's clock: a mode of
  ///     the caller's own, so that nothing else is served. Nil: the thread blocks.
  /// - Returns: The reply; nil if the receiver sent none.
  /// - Throws: As ``send(id:bytes:descriptors:sendTimeout:)``, and ``MessagePortError/receiveTimedOut``,
  ///   ``MessagePortError/rejected(_:)``, ``MessagePortError/stopped``, ``MessagePortError/runLoop(_:)``.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortSendRequest`.
  ///
  /// - Complexity: O(n) in the bytes.
  public func send(
    id: Int32, bytes: [UInt8] = [], descriptors: [Int32] = [], sendTimeout: Duration? = nil,
    receiveTimeout: Duration?, replyMode: RunLoop.Mode? = nil
  ) throws(MessagePortError) -> MessagePort.Reply? {
    var content = try content(.request, id, bytes, descriptors)
    guard let replyMode else {
      guard !lock.isParents else { throw .invalid }
      let waiter = lock.withLock { state.takeWaiter() }
      let sendDeadline = sendTimeout.map { Tick.after($0) } ?? .never
      while case .noRoom = try attempt(&content, waiter) { try awaitRoom(writable: true, until: sendDeadline) }
      return try awaitReply(waiter, until: receiveTimeout.map { Tick.after($0) } ?? .never)
    }
    return try send(&content, ReplyWaiter(), sendTimeout, receiveTimeout, in: replyMode)
  }

  /// A message within the limits.
  func content(
    _ kind: MessageFrame.Kind, _ id: Int32, _ bytes: [UInt8], _ descriptors: [Int32]
  ) throws(MessagePortError) -> MessageContent {
    guard bytes.count <= maximumMessageSize else { throw .messageTooLarge(bytes.count, limit: maximumMessageSize) }
    guard descriptors.count <= MessageFrame.descriptorLimit else {
      throw .tooManyDescriptors(descriptors.count, limit: MessageFrame.descriptorLimit)
    }
    var content = MessageContent(kind, id: id, bytes: bytes, descriptors: descriptors)
    do { try content.prepare() } catch { throw .system(error) }
    return consume content
  }

  enum Attempt {
    case sent(UInt64)
    /// The socket has no room.
    case noRoom
    /// Too many messages are not confirmed.
    case unconfirmed
  }

  /// Sends a message, if there is room now.
  ///
  /// The tokens go out in order, which confirmations count on: so the lock is held. Nothing blocks under it.
  func attempt(_ content: inout MessageContent, _ waiter: ReplyWaiter?) throws(MessagePortError) -> Attempt {
    guard lock.lockUnlessParents() else { throw .invalid }
    if let end = state.end {
      lock.unlock()
      throw end
    }
    if waiter == nil, state.unconfirmed.count >= UnconfirmedMessages.limit {
      lock.unlock()
      readWhatIsThere()
      guard lock.withLock({ state.end != nil || state.unconfirmed.count < UnconfirmedMessages.limit }) else {
        return .unconfirmed
      }
      return try attempt(&content, waiter)
    }
    let token = state.register(id: content.frame.id, waiter)
    content.frame.token = token
    do throws(SystemError) {
      try content.send(on: socket)
    } catch {
      state.unregister(token, waiter)
      lock.unlock()
      switch error.number {
      case EAGAIN: return .noRoom
      case EPIPE, ECONNRESET, ENOTCONN:
        // What came before the end is read first.
        readWhatIsThere()
        throw lock.withLock { state.end } ?? .peerClosed
      default: throw .system(error)
      }
    }
    state.statistics.sentCount += 1
    let mayReadConfirmations = waiter == nil && state.unconfirmed.count >= UnconfirmedMessages.limit / 2
    lock.unlock()
    if mayReadConfirmations, token % 64 == 0 { readWhatIsThere() }
    return .sent(token)
  }

  /// Waits until all one-way messages that were sent are confirmed, or rejected and reported.
  ///
  /// The calling thread blocks. Any thread, but not in a call of `undelivered`, which would wait for itself.
  ///
  /// - Throws: ``MessagePortError/receiveTimedOut``, and what has ended the port if messages were lost with it, which
  ///   are reported or about to be. ``MessagePortError/invalid`` in a child of a fork, for its parent's port.
  public func awaitConfirmations(timeout: Duration? = nil) throws(MessagePortError) {
    guard !lock.isParents else { throw .invalid }
    let deadline = timeout.map { Tick.after($0) } ?? .never
    while true {
      lock.lock()
      let end = state.end
      let hasLostMessages = state.hasLostMessages
      let isConfirmed = state.unconfirmed.count == 0
      let isReported = state.rejected.isEmpty && !state.isReporting
      let mustThrow = end != nil && hasLostMessages
      guard !mustThrow, !(isConfirmed && isReported), Tick.monotonicNow < deadline else {
        lock.unlock()
        if let end, mustThrow { throw end }
        if isConfirmed && isReported { return }
        throw .receiveTimedOut
      }
      // Nothing need come any more; another thread is reporting.
      if isConfirmed {
        follow(until: deadline)
        continue
      }
      lock.unlock()
      do {
        try awaitRoom(writable: false, until: deadline)
      } catch {
        throw error == .sendTimedOut ? .receiveTimedOut : error
      }
    }
  }
}

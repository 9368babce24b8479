// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Remote {
  /// Sends a message without waiting for a reply.
  ///
  /// The kernel has the message when the call returns. If the receiver is slow, the sender waits for room in the
  /// socket, and when 1024 messages are unconfirmed. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - id: An ID by which the receiver identifies the kind of message.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors to copy to the receiver. The caller still owns them.
  ///   - sendTimeout: The time limit for waiting for room, which blocks the calling thread. With zero, this does not
  ///     wait. Defaults to `nil`, which sets no limit.
  /// - Returns: The message's serial number, which `undelivered` reports.
  /// - Throws: ``MessagePortError/sendTimedOut``, ``MessagePortError/peerClosed``, ``MessagePortError/invalid``,
  ///   ``MessagePortError/messageTooLarge(_:limit:)``, ``MessagePortError/tooManyDescriptors(_:limit:)``, or
  ///   ``MessagePortError/system(_:)``. The message was not sent.
  /// - Complexity: O(*n*) in the number of bytes.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortSendRequest` without a reply mode.
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
  ///   - id: An ID by which the receiver identifies the kind of message.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors to copy to the receiver. The caller still owns them.
  ///   - sendTimeout: The time limit for waiting for room. Defaults to `nil`, which sets no limit.
  ///   - receiveTimeout: The time limit for the reply after that, or `nil` for none.
  ///   - replyMode: The mode in which the calling thread's loop runs while it waits, measuring time by its clock. Use
  ///     a private mode, so that nothing else is served. Defaults to `nil`, which blocks the thread.
  /// - Returns: The reply, or `nil` if the receiver sent none.
  /// - Throws: The errors of ``send(id:bytes:descriptors:sendTimeout:)``, and ``MessagePortError/receiveTimedOut``,
  ///   ``MessagePortError/rejected(_:)``, ``MessagePortError/stopped`` or ``MessagePortError/runLoop(_:)``.
  /// - Complexity: O(*n*) in the number of bytes.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortSendRequest`.
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

  /// Creates a message, and checks that it is within the limits.
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
    case noRoom
    case unconfirmed
  }

  /// Sends a message if there is room now, with the lock held because confirmations rely on tokens being sent in order.
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
        // Read the packets that arrived before the end first.
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
  /// Blocks the calling thread. Can be called from any thread, but not within `undelivered`, where it would deadlock.
  /// The default timeout, `nil`, sets no limit.
  ///
  /// - Throws: ``MessagePortError/receiveTimedOut``; the error that ended the port, if messages were lost, which are
  ///   then reported; ``MessagePortError/invalid`` in a forked child, for a port of its parent.
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
      // Nothing more needs to arrive; another thread is reporting.
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

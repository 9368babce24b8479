// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Remote {
  /// Sends a message and returns the reply, without blocking a thread.
  ///
  /// A thread of this package reads the reply.
  ///
  /// - Parameters:
  ///   - id: An ID by which the receiver identifies the kind of message.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors to copy to the receiver. The caller still owns them.
  ///   - timeout: The time limit for sending and for the reply together. Defaults to `nil`, which sets no limit.
  /// - Returns: The reply, or `nil` if the receiver sent none.
  /// - Throws: The errors of ``send(id:bytes:descriptors:sendTimeout:receiveTimeout:replyMode:)``, and
  ///   ``MessagePortError/cancelled``.
  /// - Complexity: O(*n*) in the number of bytes.
  public func request(
    id: Int32, bytes: [UInt8] = [], descriptors: [Int32] = [], timeout: Duration? = nil
  ) async throws(MessagePortError) -> MessagePort.Reply? {
    try watchForReplies()
    var content = try content(.request, id, bytes, descriptors)
    let deadline = timeout.map { Tick.after($0) } ?? .never
    let waiter = ReplyWaiter()
    while case .noRoom = try attempt(&content, waiter) { try await awaitRoomInTask(until: deadline) }
    let token = waiter.token
    let timer = timer(until: deadline) { [weak self] in
      self?.complete(token, .failure(.receiveTimedOut), isReply: false)
    }
    defer { timer?.invalidate() }
    let answer = AwaitedAnswer<ReplyWaiter.Outcome>()
    let known = lock.withLock {
      if waiter.outcome == nil { waiter.wake = { answer.give($0) } }
      return waiter.outcome
    }
    if let known { answer.give(known) }
    return try await answer.value { complete(token, .failure(.cancelled), isReply: false) }.get()
  }

  /// Waits on the service thread's loop until the socket has room.
  private func awaitRoomInTask(until deadline: Tick) async throws(MessagePortError) {
    let answer = AwaitedAnswer<MessagePortError?>()
    let timer = timer(until: deadline) { answer.give(.sendTimedOut) }
    let source = RunLoop.DescriptorSource(descriptor: socket.number, events: .writable) { source, _ in
      source.invalidate()
      answer.give(nil)
    }
    defer {
      timer?.invalidate()
      source.invalidate()
    }
    do { try ServiceThread.loop.add(source, forMode: .default) } catch { throw .runLoop(error) }
    if let failure = await answer.value(onCancel: { answer.give(.cancelled) }) { throw failure }
  }

  private func timer(until deadline: Tick, _ body: @escaping @Sendable () -> Void) -> Timer? {
    guard deadline != .never else { return nil }
    let timer = Timer(deadline: deadline.instant) { _ in body() }
    ServiceThread.loop.add(timer, forMode: .default)
    return timer
  }
}

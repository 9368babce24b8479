// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Remote {
  /// Sends a message and returns the reply, without blocking a thread.
  ///
  /// The package's own thread reads the reply.
  ///
  /// - Parameters:
  ///   - id: What the receiver knows the message by.
  ///   - bytes: The payload.
  ///   - descriptors: Open descriptors of which the receiver gets copies; they stay the caller's.
  ///   - timeout: How long to wait, for room and for the reply together. Nil means indefinitely.
  /// - Returns: The reply; nil if the receiver sent none.
  /// - Throws: As ``send(id:bytes:descriptors:sendTimeout:receiveTimeout:replyMode:)``, and
  ///   ``MessagePortError/cancelled``.
  /// - Complexity: O(n) in the bytes.
  public func request(
    id: Int32, bytes: [UInt8] = [], descriptors: [Int32] = [], timeout: Duration? = nil
  ) async throws(MessagePortError) -> MessagePort.Reply? {
    try watchForReplies()
    var content = try content(.request, id, bytes, descriptors)
    let deadline = timeout.map { Tick.after($0) } ?? .never
    let waiter = ReplyWaiter()
    while case .noRoom = try attempt(&content, waiter) {
      let turn = AsyncTurn()
      try await turn.awaitRoom(self, until: deadline)
    }
    let token = waiter.token
    let timer =
      deadline == .never
      ? nil
      : AsyncTurn.timer(until: deadline) { [weak self] in
        self?.complete(token, .failure(.receiveTimedOut), isReply: false)
      }
    defer { timer?.invalidate() }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<ReplyWaiter.Outcome, Never>) in
        let outcome = lock.withLock {
          if waiter.outcome == nil { waiter.wake = { continuation.resume(returning: $0) } }
          return waiter.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      complete(token, .failure(.cancelled), isReply: false)
    }
    lock.noteResumption()
    return try outcome.get()
  }
}

/// A wait of a task on the package's own loop: for room in a socket, for a date, or for its cancellation.
private final class AsyncTurn: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.
  private let lock = Lock()
  private var continuation: CheckedContinuation<MessagePortError?, Never>?
  private var result: MessagePortError??

  static func timer(until deadline: Tick, _ body: @escaping @Sendable () -> Void) -> Timer {
    let timer = Timer(deadline: deadline.instant) { _ in body() }
    ServiceThread.loop.add(timer, forMode: .default)
    return timer
  }

  /// Waits until a socket has room.
  func awaitRoom(_ port: MessagePort.Remote, until deadline: Tick) async throws(MessagePortError) {
    let timer = deadline == .never ? nil : AsyncTurn.timer(until: deadline) { self.end(.sendTimedOut) }
    let source = RunLoop.DescriptorSource(descriptor: port.socket.number, events: .writable) { source, _ in
      source.invalidate()
      self.end(nil)
    }
    defer {
      timer?.invalidate()
      source.invalidate()
    }
    do { try ServiceThread.loop.add(source, forMode: .default) } catch { throw .runLoop(error) }
    let failure = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<MessagePortError?, Never>) in
        let result = lock.withLock {
          if self.result == nil { self.continuation = continuation }
          return self.result
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      end(.cancelled)
    }
    lock.noteResumption()
    if let failure { throw failure }
  }

  private func end(_ failure: MessagePortError?) {
    let continuation = lock.withLock {
      if result == nil { result = .some(failure) }
      defer { self.continuation = nil }
      return self.continuation
    }
    continuation?.resume(returning: failure)
  }
}

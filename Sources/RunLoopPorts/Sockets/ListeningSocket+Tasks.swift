// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// For tasks: the socket is in a loop, and a task waits for it on whatever thread it runs.
extension ListeningSocket {
  /// Waits for a connection; nil when the socket is invalidated or the task is cancelled.
  ///
  /// Between two calls nothing is accepted, unless there is a handler. One task at a time.
  ///
  /// - Throws: ``SocketError/busy``, or the error that has closed the socket while the task waited;
  ///   ``SocketError/loop(_:)`` if the threads of all loops that the socket is in have ended.
  public func accept() async throws -> Socket? {
    guard !lock.isParents else { return nil }
    let number = lock.withLock {
      lastWait += 1
      return lastWait
    }
    defer { lock.noteResumption() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait($0, number) }
    } onCancel: {
      lock.lock()
      guard acceptorWait == number else { return lock.unlock() }
      let waiting = acceptor
      acceptor = nil
      updateInterest()
      lock.unlock()
      waiting?.resume(returning: nil)
    }
  }

  private func wait(_ continuation: CheckedContinuation<Socket?, any Error>, _ number: UInt64) {
    lock.lock()
    let answer: Result<Socket?, any Error>?
    if acceptor != nil {
      answer = .failure(SocketError.busy)
    } else if Task.isCancelled || descriptor == nil {
      answer = .success(nil)
    } else if noteAwaited(), places.areOver {
      answer = .failure(SocketError.loop(.loopHasEnded))
    } else {
      answer = nil
      acceptor = continuation
      acceptorWait = number
      updateInterest()
    }
    lock.unlock()
    if let answer { continuation.resume(with: answer) }
  }

  /// Says, before the loops are looked at, that a task waits: then either it finds them over, or their end finds it.
  private func noteAwaited() -> Bool {
    awaited.store(true, ordering: .sequentiallyConsistent)
    return true
  }

  /// Connections as they come, until the socket is invalidated.
  public struct Connections: AsyncSequence, Sendable {
    let socket: ListeningSocket

    /// Waits for each connection.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let socket: ListeningSocket

      /// Waits for the next connection; nil when the socket is invalidated or the task is cancelled.
      public mutating func next() async throws -> Socket? { try await socket.accept() }
    }

    /// Begins to wait.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(socket: socket) }
  }

  /// The connections that come, as a sequence: nothing is accepted but what is asked for.
  public var connections: Connections { Connections(socket: self) }
}

extension ListeningSocket: AwaitedItem {
  var isAwaited: Bool { awaited.load(ordering: .sequentiallyConsistent) }

  func endWaitsIfLoopsHaveEnded() {
    lock.lock()
    guard places.areOver else { return lock.unlock() }
    let waiting = acceptor
    acceptor = nil
    lock.unlock()
    waiting?.resume(throwing: SocketError.loop(.loopHasEnded))
  }
}

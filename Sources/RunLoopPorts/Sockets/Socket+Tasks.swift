// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// For tasks: the socket is in a loop, and tasks wait for it on whatever thread they run.
extension Socket {
  /// Waits for bytes and takes them; nil at the end.
  ///
  /// Nothing is received between two calls, so a slow task lets the peer wait. One task at a time. A task that is
  /// cancelled gets nil, and nothing is lost.
  ///
  /// - Parameter limit: How many bytes to take at most; more than a mebibyte is never taken at a time.
  /// - Throws: ``SocketError``: that of the connection once, then ``SocketError/invalid``; ``SocketError/busy``;
  ///   ``SocketError/loop(_:)`` if the threads of all loops that the socket is in have ended.
  public func receive(atMost limit: Int = 64 * 1024) async throws -> [UInt8]? {
    guard !lock.isParents else { throw SocketError.invalid }
    let number = nextWait()
    defer { lock.noteResumption() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait($0, number, limit: min(max(1, limit), Self.longestPiece)) }
    } onCancel: {
      lock.lock()
      // A task that was refused, or has yet to wait, leaves alone the one that waits.
      guard readerWait == number else { return lock.unlock() }
      let waiting = reader
      reader = nil
      state.taker = handlerTaker
      updateInterest()
      lock.unlock()
      waiting?.resume(returning: nil)
    }
  }

  /// The most bytes that a task takes at a time: room for them is made before they are there.
  private static let longestPiece = 1 << 20

  private func nextWait() -> UInt64 {
    lock.withLock {
      lastWait += 1
      return lastWait
    }
  }

  private func wait(_ continuation: CheckedContinuation<[UInt8]?, any Error>, _ number: UInt64, limit: Int) {
    lock.lock()
    let answer: Result<[UInt8]?, any Error>?
    if reader != nil {
      answer = .failure(SocketError.busy)
    } else if Task.isCancelled {
      answer = .success(nil)
    } else if state.hasEnded {
      answer = .success(nil)
    } else if state.phase == .closed {
      answer = .failure(SocketError.invalid)
    } else if noteAwaited(), places.areOver {
      answer = .failure(SocketError.loop(.loopHasEnded))
    } else {
      answer = nil
      reader = continuation
      readerWait = number
      readerLimit = limit
      state.taker = .waiter
      updateInterest()
    }
    lock.unlock()
    if let answer { continuation.resume(with: answer) }
  }

  /// Sends bytes, and waits while ``Options/highWater`` bytes or more are queued.
  ///
  /// One task at a time. A task that is cancelled waits no longer, and what was taken is sent.
  ///
  /// - Throws: ``SocketError``: that of the connection, ``SocketError/closedForWriting``, ``SocketError/invalid``,
  ///   ``SocketError/busy``; ``SocketError/loop(_:)`` as for receiving.
  public func send(_ bytes: [UInt8]) async throws {
    if try write(bytes) { return }
    let number = nextWait()
    defer { lock.noteResumption() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait($0, number) }
    } onCancel: {
      lock.lock()
      guard writerWait == number else { return lock.unlock() }
      let waiting = writer
      writer = nil
      lock.unlock()
      waiting?.resume()
    }
  }

  private func wait(_ continuation: CheckedContinuation<Void, any Error>, _ number: UInt64) {
    lock.lock()
    let answer: Result<Void, any Error>?
    switch state.phase {
    case .closed: answer = .failure(SocketError.invalid)
    case .closing(let error): answer = .failure(error ?? .closedForWriting)
    case .connecting, .securing, .open:
      if writer != nil {
        answer = .failure(SocketError.busy)
      } else if Task.isCancelled || !state.owesRoom {
        answer = .success(())
      } else if noteAwaited(), places.areOver {
        answer = .failure(SocketError.loop(.loopHasEnded))
      } else {
        answer = nil
        writer = continuation
        writerWait = number
      }
    }
    lock.unlock()
    if let answer { continuation.resume(with: answer) }
  }

  /// Says, before the loops are looked at, that a task waits: then either it finds them over, or their end finds it.
  private func noteAwaited() -> Bool {
    awaited.store(true, ordering: .sequentiallyConsistent)
    return true
  }

  /// The bytes that arrive, in chunks, until the end.
  public struct Pieces: AsyncSequence, Sendable {
    let socket: Socket

    /// Waits for each chunk.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let socket: Socket

      /// Waits for the next chunk; nil at the end and when the task is cancelled.
      public mutating func next() async throws -> [UInt8]? { try await socket.receive() }
    }

    /// Begins to wait.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(socket: socket) }
  }

  /// The bytes that come, as a sequence: nothing is received but what is asked for.
  public var pieces: Pieces { Pieces(socket: self) }
}

extension Socket: AwaitedItem {
  var isAwaited: Bool { awaited.load(ordering: .sequentiallyConsistent) }

  func endWaitsIfLoopsHaveEnded() {
    lock.lock()
    guard places.areOver else { return lock.unlock() }
    let waiting = (reader: reader, writer: writer)
    reader = nil
    writer = nil
    state.taker = handlerTaker
    lock.unlock()
    waiting.reader?.resume(throwing: SocketError.loop(.loopHasEnded))
    waiting.writer?.resume(throwing: SocketError.loop(.loopHasEnded))
  }
}

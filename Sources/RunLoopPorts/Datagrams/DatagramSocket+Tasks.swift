// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

// For tasks: the socket is in a loop, and tasks wait for it on whatever thread they run.
extension DatagramSocket {
  /// Waits for a datagram; nil when the socket is invalidated or the task is cancelled.
  ///
  /// Between two calls nothing is received, unless there is a handler; what arrives waits in the system, as far as there
  /// is room. One task at a time.
  ///
  /// - Throws: ``DatagramError/busy``, or the error that has closed the socket while the task waited;
  ///   ``DatagramError/loop(_:)`` if the threads of all loops that the socket is in have ended.
  public func receive() async throws -> Datagram? {
    guard !lock.isParents else { return nil }
    let number = nextWait()
    defer { lock.noteResumption() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait($0, number) }
    } onCancel: {
      lock.lock()
      // A task that was refused, or has yet to wait, leaves alone the one that waits.
      guard readerWait == number else { return lock.unlock() }
      let waiting = reader
      reader = nil
      state.hasWaiter = false
      updateInterest()
      lock.unlock()
      waiting?.resume(returning: nil)
    }
  }

  private func nextWait() -> UInt64 {
    lock.withLock {
      lastWait += 1
      return lastWait
    }
  }

  private func wait(_ continuation: CheckedContinuation<Datagram?, any Error>, _ number: UInt64) {
    lock.lock()
    let answer: Result<Datagram?, any Error>?
    if reader != nil {
      answer = .failure(DatagramError.busy)
    } else if Task.isCancelled || state.isOver {
      answer = .success(nil)
    } else if noteAwaited(), places.areOver {
      answer = .failure(DatagramError.loop(.loopHasEnded))
    } else {
      answer = nil
      reader = continuation
      readerWait = number
      state.hasWaiter = true
      updateInterest()
    }
    lock.unlock()
    if let answer { continuation.resume(with: answer) }
  }

  /// Sends a datagram, and waits while there is no room for it.
  ///
  /// One task at a time waits. A task that is cancelled waits no longer, and nothing was sent.
  ///
  /// - Returns: Whether it was sent; false if the task was cancelled before.
  /// - Throws: As ``send(_:to:)-([UInt8],_)`` without waiting; ``DatagramError/busy``; ``DatagramError/loop(_:)`` as for
  ///   receiving.
  @discardableResult
  public func sendWhenRoom(_ bytes: [UInt8], to address: SocketAddress? = nil) async throws -> Bool {
    while !Task.isCancelled {
      if try send(bytes, to: address) { return true }
      try await awaitRoom()
    }
    return false
  }

  private func awaitRoom() async throws {
    let number = nextWait()
    defer { lock.noteResumption() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waitForRoom($0, number) }
    } onCancel: {
      lock.lock()
      guard writerWait == number else { return lock.unlock() }
      let waiting = writer
      writer = nil
      lock.unlock()
      waiting?.resume()
    }
  }

  private func waitForRoom(_ continuation: CheckedContinuation<Void, any Error>, _ number: UInt64) {
    lock.lock()
    let answer: Result<Void, any Error>?
    if state.isOver {
      answer = .failure(DatagramError.invalid)
    } else if writer != nil {
      answer = .failure(DatagramError.busy)
    } else if Task.isCancelled || state.room == .notAwaited {
      answer = .success(())
    } else if noteAwaited(), places.areOver {
      answer = .failure(DatagramError.loop(.loopHasEnded))
    } else {
      answer = nil
      writer = continuation
      writerWait = number
    }
    lock.unlock()
    if let answer { continuation.resume(with: answer) }
  }

  /// Says, before the loops are looked at, that a task waits: then either it finds them over, or their end finds it.
  private func noteAwaited() -> Bool {
    awaited.store(true, ordering: .sequentiallyConsistent)
    return true
  }

  /// Datagrams as they come, until the socket is invalidated.
  public struct Datagrams: AsyncSequence, Sendable {
    let socket: DatagramSocket

    /// Waits for each datagram.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let socket: DatagramSocket

      /// Waits for the next datagram; nil when the socket is invalidated or the task is cancelled.
      public mutating func next() async throws -> Datagram? { try await socket.receive() }
    }

    /// Begins to wait.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(socket: socket) }
  }

  /// The datagrams that come, as a sequence: nothing is received but what is asked for.
  public var datagrams: Datagrams { Datagrams(socket: self) }
}

extension DatagramSocket: AwaitedItem {
  var isAwaited: Bool { awaited.load(ordering: .sequentiallyConsistent) }

  func endWaitsIfLoopsHaveEnded() {
    lock.lock()
    guard places.areOver else { return lock.unlock() }
    let waiting = (reader: reader, writer: writer)
    reader = nil
    writer = nil
    state.hasWaiter = false
    lock.unlock()
    waiting.reader?.resume(throwing: DatagramError.loop(.loopHasEnded))
    waiting.writer?.resume(throwing: DatagramError.loop(.loopHasEnded))
  }
}

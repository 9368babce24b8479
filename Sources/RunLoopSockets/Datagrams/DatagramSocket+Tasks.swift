// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks: the socket is in a loop, and tasks wait for it on whatever thread they run.
extension DatagramSocket {
  /// Waits for a datagram; returns nil when the socket is invalidated or the task is cancelled.
  ///
  /// Nothing is received between two calls, unless there is a handler; datagrams that arrive wait in the system, as far
  /// as there is room. Only one task can wait at a time.
  ///
  /// - Throws: ``DatagramError/busy``, or the error that has closed the socket while the task waited;
  ///   ``DatagramError/loop(_:)`` if the socket is in no loop, or the threads of all its loops have ended.
  public func receive() async throws -> Datagram? {
    guard !lock.isParents else { return nil }
    return try await wait(
      \.reader, cancelled: nil, unless: { state.isOver ? .success(nil) : nil },
      changed: {
        state.hasWaiter = reader.isTaken
        updateInterest()
      })
  }

  /// Sends a datagram, and waits while there is no room for it.
  ///
  /// Several tasks may wait. A task that is cancelled no longer waits, and nothing was sent.
  ///
  /// - Returns: Whether it was sent; false if the task was cancelled before.
  /// - Throws: The errors of ``send(_:to:from:)-([UInt8],_,_)`` without waiting; ``DatagramError/loop(_:)``
  ///   as for receiving.
  @discardableResult
  public func sendWhenRoom(
    _ bytes: [UInt8], to address: SocketAddress? = nil, from source: SocketAddress? = nil
  ) async throws -> Bool {
    while !Task.isCancelled {
      if try send(bytes, to: address, from: source) { return true }
      try await awaitRoom()
    }
    return false
  }

  private func awaitRoom() async throws {
    try await wait(
      \.writer, cancelled: (),
      unless: { state.isOver ? .failure(DatagramError.invalid) : state.room == .notAwaited ? .success(()) : nil },
      changed: {})
  }

  /// The datagrams that arrive until the socket is invalidated, as a sequence, which receives only those that are asked
  /// for.
  public var datagrams: Arrivals<Datagram> { Arrivals { try await self.receive() } }
}

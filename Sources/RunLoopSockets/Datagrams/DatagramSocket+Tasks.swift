// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks. The socket has to be in a loop; the tasks can run on any thread.
extension DatagramSocket {
  /// Waits for a datagram, or returns `nil` if the socket is invalidated or the task is cancelled.
  ///
  /// Between two calls nothing is received unless there is a handler; datagrams that arrive wait in the system as far
  /// as there is room. Only one task can wait at a time.
  ///
  /// - Throws: ``DatagramError/busy``; the error that closed the socket, also if no task was waiting then;
  ///   ``DatagramError/loop(_:)`` if the socket is in no loop, or if the threads of all its loops have ended.
  public func receive() async throws -> Datagram? {
    guard !lock.isParents else { return nil }
    return try await wait(
      \.reader, cancelled: nil,
      unless: { state.isOver ? state.endError.map { .failure($0) } ?? .success(nil) : nil },
      changed: {
        state.hasWaiter = reader.isTaken
        updateInterest()
      })
  }

  /// Sends a datagram, and waits while there is no room for it.
  ///
  /// Several tasks can wait. A task that is cancelled stops waiting, and its datagram is not sent.
  ///
  /// - Returns: Whether the datagram was sent; false if the task was cancelled first.
  /// - Throws: The errors of ``send(_:to:from:)-([UInt8],_,_)``, and ``DatagramError/loop(_:)`` as for receiving.
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
      unless: { state.isOver ? .failure(state.endError ?? .invalid) : state.room == .notAwaited ? .success(()) : nil },
      changed: {})
  }

  /// The datagrams that arrive until the socket is invalidated, as an asynchronous sequence that receives each only
  /// when it is requested.
  public var datagrams: Arrivals<Datagram> { Arrivals { try await self.receive() } }
}

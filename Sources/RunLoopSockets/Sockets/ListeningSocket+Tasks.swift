// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks. The socket has to be in a loop; the tasks can run on any thread.
extension ListeningSocket {
  /// Waits for a connection, or returns `nil` if the socket is invalidated or the task is cancelled.
  ///
  /// Between two calls nothing is accepted unless there is a handler. Only one task can wait at a time.
  ///
  /// - Throws: ``SocketError/busy``; the error that closed the socket, also if no task was waiting then;
  ///   ``SocketError/loop(_:)`` if the socket is in no loop, or if the threads of all its loops have ended.
  public func accept() async throws -> Socket? {
    guard !lock.isParents else { return nil }
    return try await wait(
      \.acceptor, cancelled: nil,
      unless: { descriptor == nil ? endError.map { .failure($0) } ?? .success(nil) : nil },
      changed: { updateInterest() })
  }

  /// The connections that arrive until the socket is invalidated, as an asynchronous sequence that accepts each only
  /// when it is requested.
  public var connections: Arrivals<Socket> { Arrivals { try await self.accept() } }
}

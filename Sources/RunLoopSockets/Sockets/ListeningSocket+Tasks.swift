// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents
import Synchronization

// For tasks: the socket is in a loop, and a task waits for it on whatever thread it runs.
extension ListeningSocket {
  /// Waits for a connection; returns nil when the socket is invalidated or the task is cancelled.
  ///
  /// Nothing is accepted between two calls, unless there is a handler. Only one task can wait at a time.
  ///
  /// - Throws: ``SocketError/busy``, or the error that has closed the socket while the task waited;
  ///   ``SocketError/loop(_:)`` if the socket is in no loop, or the threads of all its loops have ended.
  public func accept() async throws -> Socket? {
    guard !lock.isParents else { return nil }
    return try await wait(
      \.acceptor, cancelled: nil, unless: { descriptor == nil ? .success(nil) : nil }, changed: { updateInterest() })
  }

  /// The connections that arrive until the socket is invalidated, as a sequence, which accepts only those that are
  /// asked for.
  public var connections: Arrivals<Socket> { Arrivals { try await self.accept() } }
}

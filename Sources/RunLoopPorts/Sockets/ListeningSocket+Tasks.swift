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
    return try await wait(
      \.acceptor, cancelled: nil, unless: { descriptor == nil ? .success(nil) : nil }, changed: { updateInterest() })
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

extension ListeningSocket: TaskItem {
  static func error(_ refusal: WaitRefusal) -> any Error { Socket.error(refusal) }

  func takeWaits() -> [(any Error) -> Void] { [acceptor.takeFailing()].compactMap { $0 } }
}

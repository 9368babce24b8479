// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
public import RunLoopSystemEvents
import Synchronization

extension ListeningSocket {
  /// Closes the socket, as ``BaseSocket/invalidate()`` does, and waits until all accepted connections have ended.
  ///
  /// If the task is cancelled, the remaining connections are cut: their peers see the end of the stream, and their
  /// handlers are notified when their loops serve them. Can be called from any thread, and repeatedly.
  ///
  /// - Parameter endsInput: Whether to stop receiving on the connections. Their handlers process the bytes that
  ///   have arrived and are then notified of the end (``Socket/Event/ended``), as if their peers had finished
  ///   writing. This ends connections on which a peer is silent between requests. A secured connection that has not
  ///   completed its handshake is closed with ``TLSError/Cause/closedDuringHandshake``. The default is false.
  /// - Returns: The number of connections that were cut.
  @discardableResult
  public func drain(endsInput: Bool = false) async -> Int {
    invalidate()
    if endsInput {
      inputEnd.isEnded.store(true, ordering: .releasing)
      shutDownConnections(Int32(SHUT_RD))
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = lock.ifOwned(else: true) {
          guard connectionCount > 0, !Task.isCancelled else { return true }
          drains.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let drained = lock.ifOwned(else: []) { () -> [CheckedContinuation<Void, Never>] in
        defer { drains = [] }
        return drains
      }
      for drain in drained { drain.resume() }
    }
    return shutDownConnections(Int32(SHUT_RDWR))
  }

  /// Shuts each connection down, which its loop then notices, and returns the number of connections.
  @discardableResult
  private func shutDownConnections(_ how: Int32) -> Int {
    lock.ifOwned(else: 0) {
      // Each descriptor in this dictionary is still open.
      for descriptor in openPlaces.keys { _ = shutdown(descriptor, how) }
      return openPlaces.count
    }
  }
}

extension GracefulShutdown {
  /// Adds a step that drains a listening socket.
  ///
  /// See ``ListeningSocket/drain(endsInput:)``.
  ///
  /// - Returns: False if the shutdown is over and the step will not run.
  @discardableResult
  public func add(_ name: String, _ listener: ListeningSocket, endsInput: Bool = false) -> Bool {
    add(name) { await listener.drain(endsInput: endsInput) }
  }
}

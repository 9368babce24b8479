// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
public import RunLoopSystemEvents
import Synchronization

extension ListeningSocket {
  /// Closes the socket, as ``BaseSocket/invalidate()`` does, and waits until all connections that it has accepted are
  /// over.
  ///
  /// If the task is cancelled, the connections that are left are cut: their peers see the end, and their handlers are
  /// notified of it when their loops serve them. Can be called from any thread, and again.
  ///
  /// - Parameter endsInput: Whether nothing more is received on the connections: their handlers respond to what has
  ///   arrived, and are then notified of the end (``Socket/Event/ended``), as if their peers had written their last
  ///   byte. That ends connections on which a peer keeps silent between requests. A secured connection whose handshake
  ///   is not done is closed with ``TLSError/Cause/closedDuringHandshake``.
  /// - Returns: How many connections were cut.
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

  /// Ends a side of each connection, whose loops find that; returns how many there were.
  @discardableResult
  private func shutDownConnections(_ how: Int32) -> Int {
    lock.ifOwned(else: 0) {
      // Each is open as long as it is here.
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
  /// - Returns: False if the shutdown is over: the step is not run.
  @discardableResult
  public func add(_ name: String, _ listener: ListeningSocket, endsInput: Bool = false) -> Bool {
    add(name) { await listener.drain(endsInput: endsInput) }
  }
}

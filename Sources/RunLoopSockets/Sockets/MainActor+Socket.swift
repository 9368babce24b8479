// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension MainActor {
  /// Returns a handler of socket events that runs on the main actor.
  ///
  /// See `MainActor.handler(_:)` of RunLoopCore.
  ///
  /// - Precondition: The socket is in no loop other than `RunLoop.main`.
  public nonisolated static func handler(
    _ body: @escaping @MainActor @Sendable (Socket, Socket.Event) -> Void
  ) -> Socket.Handler {
    { socket, event in MainActor.assumeIsolated { body(socket, event) } }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A handler that is released when it has been removed and no call of it is running.
package final class HandlerBox<Handler: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards the handler.

  private let lock = Lock()
  private var handler: Handler?

  package init(_ handler: Handler) {
    self.handler = handler
  }

  package init() {}

  /// Stores a handler, replacing the previous one.
  package func put(_ handler: Handler) {
    let before = lock.withLock {
      let before = self.handler
      self.handler = handler
      return before
    }
    withExtendedLifetime(before) {}
  }

  /// The current handler, to be retained during a call.
  package var held: Handler? { lock.withLock { handler } }

  /// Removes and returns the handler, so that only one caller gets it; release it without holding a lock.
  @discardableResult
  package func take() -> Handler? {
    lock.withLock {
      let taken = handler
      handler = nil
      return taken
    }
  }
}

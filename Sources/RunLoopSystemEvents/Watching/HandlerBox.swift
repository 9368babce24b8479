// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A user's handler, which is released when it has been given up and none of its calls runs.
package final class HandlerBox<Handler: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards the handler.

  private let lock = Lock()
  private var handler: Handler?

  package init(_ handler: Handler) {
    self.handler = handler
  }

  /// Makes a box that is empty.
  package init() {}

  /// Puts a handler in, in the place of another.
  package func put(_ handler: Handler) {
    let before = lock.withLock {
      let before = self.handler
      self.handler = handler
      return before
    }
    withExtendedLifetime(before) {}
  }

  /// The handler to call now.
  ///
  /// Whoever has it keeps it from being released.
  package var held: Handler? { lock.withLock { handler } }

  /// Takes the handler, so that one caller has it; the caller releases it under no lock.
  @discardableResult
  package func take() -> Handler? {
    lock.withLock {
      let taken = handler
      handler = nil
      return taken
    }
  }
}

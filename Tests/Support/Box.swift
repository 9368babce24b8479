// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A variable that threads and call-outs share, or that a call-out needs and that is known only after it.
///
/// Its lock is our own: `Synchronization.Mutex` gives false reports under the thread sanitizer when two threads
/// contend.
package final class Box<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: Value

  package init(_ value: Value) { stored = value }

  package var value: Value {
    get { lock.withLock { stored } }
    set {
      // What was there is released after the lock: it may use the box.
      var value = newValue
      lock.withLock { swap(&stored, &value) }
    }
  }

  /// Changes the value while nobody else sees it.
  @discardableResult
  package func update<Result>(_ change: (inout Value) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return change(&stored)
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A variable shared by threads and call-outs, or set only after the call-out that uses it was created.
///
/// Uses our own lock because the thread sanitizer reports false races for `Synchronization.Mutex` under contention.
package final class Box<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: Value

  package init(_ value: Value) { stored = value }

  package var value: Value {
    get { lock.withLock { stored } }
    set {
      // The old value is released after the lock, as its deinitializer may use the box.
      var value = newValue
      lock.withLock { swap(&stored, &value) }
    }
  }

  /// Changes the value with the lock held, and returns the body's result.
  @discardableResult
  package func update<Result>(_ change: (inout Value) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return change(&stored)
  }
}

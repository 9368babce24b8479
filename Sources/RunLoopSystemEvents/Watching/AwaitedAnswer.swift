// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A value that one task waits for, of which only the first that is set counts.
package final class AwaitedAnswer<Value: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private let lock = Lock()
  private var continuation: CheckedContinuation<Value, Never>?
  private var answer: Value?

  package init() {}

  /// Waits for the value, which may already be set.
  ///
  /// - Parameter onCancel: Called when the task is cancelled. It must ensure that a value is set.
  package func value(onCancel: @Sendable () -> Void) async -> Value {
    defer { lock.noteResumption() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let known = lock.withLock {
          if answer == nil { self.continuation = continuation }
          return answer
        }
        if let known { continuation.resume(returning: known) }
      }
    } onCancel: {
      onCancel()
    }
  }

  /// Sets the value, unless there is already one; can be called from any thread.
  package func give(_ value: Value) {
    let waiting = lock.withLock { () -> CheckedContinuation<Value, Never>? in
      guard answer == nil else { return nil }
      answer = value
      defer { continuation = nil }
      return continuation
    }
    waiting?.resume(returning: value)
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// One answer, for which one task waits; the first that is given counts.
package final class AwaitedAnswer<Value: Sendable>: @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private let lock = Lock()
  private var continuation: CheckedContinuation<Value, Never>?
  private var answer: Value?

  package init() {}

  /// Waits for the answer, which may have been given already.
  ///
  /// - Parameter onCancel: Called when the task is cancelled; it sees to an answer.
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

  /// Gives the answer; can be called from any thread.
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

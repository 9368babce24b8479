// SPDX-License-Identifier: Apache-2.0

import RunLoopKit

/// Runs a block on a new thread, and returns its result or throws its error once the thread has ended.
func valueOnThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
    // The thread ends after its block, which it then releases.
    let ended = Ended<Value> { continuation.resume(returning: $0) }
    Thread.detachNewThread { ended.result = Result { try body() } }
  }
  return try result.get()
}

/// Reports a result when the last reference is released.
private final class Ended<Value: Sendable>: @unchecked Sendable {
  // Sendable: the thread sets the result and then releases it.
  var result: Result<Value, any Error>?
  private let tell: @Sendable (Result<Value, any Error>) -> Void

  init(_ tell: @escaping @Sendable (Result<Value, any Error>) -> Void) { self.tell = tell }
  deinit { if let result { tell(result) } }
}

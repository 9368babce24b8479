// SPDX-License-Identifier: Apache-2.0

import RunLoopKit

/// Runs a block on a new thread and gives back what it gives, or throws what it throws, when the thread has ended.
func valueOnThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
    // The end of the thread comes after that of its block, and releases it.
    let ended = Ended<Value> { continuation.resume(returning: $0) }
    Thread.detachNewThread { ended.result = Result { try body() } }
  }
  return try result.get()
}

/// Tells a result when the last reference to it has gone.
private final class Ended<Value: Sendable>: @unchecked Sendable {
  // Sendable: the thread sets the result, and lets go of it then.
  var result: Result<Value, any Error>?
  private let tell: @Sendable (Result<Value, any Error>) -> Void

  init(_ tell: @escaping @Sendable (Result<Value, any Error>) -> Void) { self.tell = tell }
  deinit { if let result { tell(result) } }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Testing

/// Runs the tests of a suite on their own thread, one after another.
///
/// They wait for other processes, for seconds. On the pool of Swift tasks, which has one thread per processor, they
/// would hold up all other tests.
struct OwnThread: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true
  private let executor = Executor()

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(executor) { try await function() }
  }

  private final class Executor: TaskExecutor {
    private let queue = DispatchQueue(label: "a suite that waits for other processes")

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
  }
}

extension Trait where Self == OwnThread {
  /// Runs the tests on their own thread, one after another.
  static var ownThread: OwnThread { OwnThread() }
}

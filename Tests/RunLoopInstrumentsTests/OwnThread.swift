// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Testing

/// Lets the tests of a suite run on a thread of their own, one after the other.
///
/// They wait for other processes, for seconds. On the pool of Swift's tasks, which has a thread for each processor, all
/// other tests would wait with them.
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
  /// The tests run on a thread of their own, one after the other.
  static var ownThread: OwnThread { OwnThread() }
}

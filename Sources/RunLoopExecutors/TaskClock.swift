// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  @_spi(ExperimentalScheduling) import RunLoopThreads
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// The thread whose timers end the sleeps of all tasks.
  ///
  /// It runs nothing else, so tasks cannot delay its timers.
  ///
  /// The first sleep starts it. If that fails, Swift's default executor ends the sleeps.
  enum TaskClock {
    private static let thread = try? ResidentThread(name: "task clock")

    static func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      guard let thread else {
        guard let other = PlatformExecutorFactory.defaultExecutor as? any SchedulingExecutor else {
          fatalError("the system can make no thread for the sleeps of tasks")
        }
        return other.enqueue(job, at: instant, tolerance: tolerance, clock: clock)
      }
      thread.enqueue(job, at: instant, tolerance: tolerance, clock: clock)
    }
  }
#endif

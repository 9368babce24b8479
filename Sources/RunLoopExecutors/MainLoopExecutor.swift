// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import Dispatch
  import RunLoopCore
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// Runs the jobs of the main actor on the main run loop.
  ///
  /// Jobs are ordered among the blocks of the loop. If the main thread exits, as with `dispatchMain()`, the main
  /// dispatch queue runs them.
  final class MainLoopExecutor: MainExecutor, SchedulingExecutor, Sendable {
    private let runner = LoopJobRunner()
    private static let isOnQueue = DispatchSpecificKey<Bool>()

    init() {
      DispatchQueue.main.setSpecific(key: Self.isOnQueue, value: true)
      runner.runs { [unowned self] job in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = LoopJob(UnownedJob(job), runner)
      guard !RunLoop.main.enqueue(job) else { return }
      DispatchQueue.main.async { [runner] in runner.run(job) }
    }

    /// Schedules a job with the clock, which enqueues it here when it is due.
    func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      TaskClock.enqueue(job.createTrampoline(to: self), at: instant, tolerance: tolerance, clock: clock)
    }

    /// Runs the main loop until ``stop()``.
    func run() { while RunLoop.main.runUntilStopped() != .stopped { requireMainQueue() } }

    /// Runs the main loop until a condition is true, checking it before and after each wait.
    func runUntil(_ condition: () -> Bool) {
      withoutActuallyEscaping(condition) { condition in
        // Called only on this thread and only during this call.
        nonisolated(unsafe) let condition = condition
        let loop = RunLoop.main
        let observer = RunLoop.Observer(activities: [.beforeTimers, .beforeWaiting]) { _, _ in
          if condition() { loop.stop() }
        }
        loop.add(observer, forMode: .common)
        while !condition(), loop.runUntilStopped() != .stopped { requireMainQueue() }
        observer.invalidate()
      }
    }

    /// Traps, because a run of the main loop ends by itself only if the main queue cannot be served.
    private func requireMainQueue() {
      fatalError("the main dispatch queue cannot be served: the process has no descriptor left for it")
    }

    func stop() { RunLoop.main.stop() }

    var isMainExecutor: Bool { true }

    func isIsolatingCurrentContext() -> Bool? {
      RunLoop.main.isOfCallingThread || DispatchQueue.getSpecific(key: Self.isOnQueue) == true
    }

    func checkIsolated() {
      guard isIsolatingCurrentContext() != true else { return }
      fatalError("expected to be on the main thread")
    }
  }
#endif

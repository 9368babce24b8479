// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization
@_spi(ExperimentalScheduling) import _Concurrency

extension ResidentThread {
  /// Whether the sleeps of tasks that prefer a resident thread are timers of its loop.
  ///
  /// False before Swift 6.3: the runtime of 6.2 asks only executors that code outside the library cannot create, and
  /// while it has one of those, it does not call its hooks for sleeps.
  package static var endsSleeps: Bool {
    #if compiler(>=6.3)
      true
    #else
      false
    #endif
  }
}

#if compiler(>=6.3)
  // The runtime asks a task's preferred executor to end its sleeps. Earlier toolchains end them without asking.
  @_spi(ExperimentalScheduling)
  extension ResidentThread: SchedulingExecutor {
    /// Schedules a job, such as the end of a sleep, with a timer of the thread's loop.
    public func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      // The loops use the monotonic clock, as does `SuspendingClock`.
      let isLoopsClock = clock is SuspendingClock
      let left: @Sendable () -> Duration = { Self.duration(until: instant, by: clock) }
      let rest = left()
      // On virtual time, the real time elapsed since the task read its own clock does not count.
      let delay = runLoop.hasSystemTime ? rest : runLoop.duration(ofRealRest: rest)
      // If the loop ends first, the sleep continues until its original instant in real time.
      let sleep = Sleep(of: UnownedJob(job), until: .after(rest), deriving: isLoopsClock ? nil : left, on: self)
      // The loop of an ended thread would reject the timer.
      guard !runLoop.takesNoItems else { return }
      let slack = (tolerance as? Duration) ?? .zero
      let timer = Timer(deadline: runLoop.instant(after: delay), tolerance: slack) { _ in sleep.end() }
      sleep.noteTimer(timer, on: runLoop)
      // If the loop rejects the timer, the sleep is released, as it is when the loop ends.
      if !runLoop.offer(timer, forMode: .common) { timer.invalidate() }
    }

    /// The time until an instant of the clock, clamped to the range of `Duration`.
    private static func duration<C: Clock>(until instant: C.Instant, by clock: C) -> Duration {
      // The standard library's difference traps on overflow. Both instant types are layout-compatible with `Duration`.
      switch (instant, clock.now) {
      case (let instant as ContinuousClock.Instant, let now as ContinuousClock.Instant):
        unsafeBitCast(instant, to: Duration.self).saturatingDifference(from: unsafeBitCast(now, to: Duration.self))
      case (let instant as SuspendingClock.Instant, let now as SuspendingClock.Instant):
        unsafeBitCast(instant, to: Duration.self).saturatingDifference(from: unsafeBitCast(now, to: Duration.self))
      case (_, let now): (now.duration(to: instant) as? Duration) ?? .zero
      }
    }
  }

  /// A job that waits for its time on a loop.
  ///
  /// If the loop ends first, the job is moved to the orphaned sleeps.
  ///
  /// It does not retain the thread's handle, because a cancelled sleep would then keep the thread alive.
  private final class Sleep: ClockedSleep, @unchecked Sendable {
    // Sendable: the variables are written before the timer is added to a loop. The runtime synchronizes the reads of
    // the weak reference.
    private let job: UnownedJob
    /// The end of the sleep in real time.
    private let deadline: Tick
    /// Returns the time left by a clock other than the loop's; nil if `deadline` is authoritative.
    private let left: (@Sendable () -> Duration)?
    private let core: ResidentCore
    private weak var timer: Timer?
    /// The address of the sleeping task; set only on virtual time.
    private var sleeper: UInt = 0
    private let isOver = Atomic<Bool>(false)

    init(
      of job: UnownedJob, until deadline: Tick, deriving left: (@Sendable () -> Duration)?, on thread: ResidentThread
    ) {
      self.job = job
      self.deadline = deadline
      self.left = left
      self.core = thread.core
    }

    /// Records the timer that ends the sleep; called by the sleeping task.
    func noteTimer(_ timer: Timer, on loop: RunLoop) {
      self.timer = timer
      if loop.hasSystemTime {
        if left != nil { ClockedSleeps.shared.add(self) }
      } else {
        sleeper = core.sleepers.add(timer)
      }
    }

    func deriveDate() {
      if let left, let timer { timer.move(after: left()) }
    }

    func end() {
      if sleeper != 0 { core.sleepers.remove(sleeper, timer) }
      if !isOver.exchange(true, ordering: .acquiringAndReleasing) { Sleep.wake(job) }
    }

    /// Runs the job synchronously on the calling thread.
    ///
    /// The job belongs to a task of the runtime, which has no preferred executor. Enqueued on the thread, it would
    /// continue in the global pool, where it could wait behind other tasks and where virtual time would not wait for
    /// it. Run without an executor, all it does is enqueue the sleeping task.
    private static func wake(_ job: UnownedJob) {
      // The generic executor, which has no identity.
      job.runSynchronously(on: unsafeBitCast((0, 0) as (Int, Int), to: UnownedSerialExecutor.self))
    }

    deinit {
      if sleeper != 0 { core.sleepers.remove(sleeper, timer) }
      if left != nil, core.runLoop.hasSystemTime { ClockedSleeps.shared.remove(self) }
      guard !isOver.load(ordering: .acquiring) else { return }
      let job = job
      guard let left else { return OrphanedSleeps.shared.add(until: deadline) { Sleep.wake(job) } }
      OrphanedSleeps.shared.add(until: .after(left()), deriving: { Tick.after(left()) }) { Sleep.wake(job) }
    }
  }
#endif

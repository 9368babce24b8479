// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization
@_spi(ExperimentalScheduling) import _Concurrency

extension ResidentThread {
  /// Whether the sleeps of tasks that prefer a resident thread are timers of its loop.
  ///
  /// With Swift 6.2 they are not: the executors that its runtime asks cannot be made outside the library, and as long
  /// as it has one, it does not call its hooks for sleeps.
  package static var endsSleeps: Bool {
    #if compiler(>=6.3)
      true
    #else
      false
    #endif
  }
}

#if compiler(>=6.3)
  // The runtime asks a task's preferred executor to end its sleeps. Before this toolchain it ended them by itself.
  @_spi(ExperimentalScheduling)
  extension ResidentThread: SchedulingExecutor {
    /// Leaves a job that is to run at an instant, such as the end of a sleep, to a timer of the thread's loop.
    public func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      // The loops count by the monotonic clock, as this one does.
      let isLoopsClock = clock is SuspendingClock
      let left: @Sendable () -> Duration = { Self.duration(until: instant, by: clock) }
      let rest = left()
      // On a loop whose time a test keeps, the time since the task read its own clock does not count.
      let delay = runLoop.hasSystemTime ? rest : runLoop.duration(ofRealRest: rest)
      // If the loop ends first, the sleep continues until its own instant, however long a test's time made it.
      let sleep = Sleep(of: UnownedJob(job), until: .after(rest), deriving: isLoopsClock ? nil : left, on: self)
      // The loop of a thread that has ended would reject the timer.
      guard !runLoop.takesNoItems else { return }
      let slack = (tolerance as? Duration) ?? .zero
      let timer = Timer(deadline: runLoop.instant(after: delay), tolerance: slack) { _ in sleep.end() }
      sleep.noteTimer(timer, on: runLoop)
      // A loop that rejects the timer releases the sleep, as a loop that ends does.
      if !runLoop.offer(timer, forMode: .common) { timer.invalidate() }
    }

    /// How long it is until an instant by its clock, or the nearest duration that exists.
    private static func duration<C: Clock>(until instant: C.Instant, by clock: C) -> Duration {
      // The library's own difference ends the process if it does not fit; these instants are durations.
      switch (instant, clock.now) {
      case (let instant as ContinuousClock.Instant, let now as ContinuousClock.Instant):
        unsafeBitCast(instant, to: Duration.self).saturatingDifference(from: unsafeBitCast(now, to: Duration.self))
      case (let instant as SuspendingClock.Instant, let now as SuspendingClock.Instant):
        unsafeBitCast(instant, to: Duration.self).saturatingDifference(from: unsafeBitCast(now, to: Duration.self))
      case (_, let now): (now.duration(to: instant) as? Duration) ?? .zero
      }
    }
  }

  /// A job that waits for its time on a loop; if the loop ends first, it waits among the orphaned sleeps.
  ///
  /// It is never lost. It does not keep the handle alive; otherwise a sleep that was cancelled would keep the thread.
  private final class Sleep: ClockedSleep, @unchecked Sendable {
    // Sendable: nothing is written after others know the sleep except the weak reference, which the runtime guards.
    private let job: UnownedJob
    /// When the sleep ends in real time.
    private let deadline: Tick
    /// How long it is until the end by a clock other than the loop's; nil: the deadline says so.
    private let left: (@Sendable () -> Duration)?
    private let core: ResidentCore
    private weak var timer: Timer?
    /// The task that sleeps, on a loop whose time a test keeps.
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

    /// Notes the timer that ends the sleep; called by the task that sleeps.
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

    /// Runs the job here and at once.
    ///
    /// It belongs to a task of the runtime's own, which prefers no executor: as one of the thread's jobs it would
    /// continue in the pool, where it can wait behind other tasks, and where a test's time would not wait for it. Run
    /// without an executor, it queues the task that sleeps, and that is all it does.
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

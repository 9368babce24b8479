// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization
@_spi(ExperimentalScheduling) import _Concurrency

#if compiler(>=6.3)
  // The runtime asks a task's preferred executor to end its sleeps. Before this toolchain it ended them by itself.
  @_spi(ExperimentalScheduling)
  extension ResidentThread: SchedulingExecutor {
    /// Leaves a job that is to run at an instant, such as the end of a sleep, to a timer of the thread's loop.
    public func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      let left = (clock.now.duration(to: instant) as? Duration) ?? .zero
      // On a loop whose time a test keeps, the time since the task read its own clock does not count.
      let delay = runLoop.hasSystemTime ? left : runLoop.duration(ofRealRest: left)
      let sleep = Sleep(of: UnownedJob(job), until: .after(delay), on: self)
      // The loop of a thread that has ended would reject the timer, and report that as a mistake.
      guard !runLoop.takesNoItems else { return }
      let slack = (tolerance as? Duration) ?? .zero
      let timer = Timer(deadline: runLoop.now.advanced(by: delay), tolerance: slack) { _ in sleep.end() }
      // A loop that rejects the timer releases the sleep, as a loop that ends does.
      runLoop.add(timer, forMode: .common)
    }
  }

  /// A job that waits for its time on a loop; if the loop ends first, it waits among the orphaned sleeps.
  ///
  /// It is never lost.
  ///
  /// It does not keep the handle alive; otherwise a sleep that was cancelled would keep the thread. A task that still
  /// sleeps holds its executor; the job of a task that does not may run as any job of the core's.
  private final class Sleep: @unchecked Sendable {
    // Sendable: nothing is written after the initializer except the weak reference, which the runtime guards.
    private let job: UnownedJob
    private let deadline: Tick
    private let core: ResidentCore
    private weak var thread: ResidentThread?
    private let isOver = Atomic<Bool>(false)

    init(of job: UnownedJob, until deadline: Tick, on thread: ResidentThread) {
      self.job = job
      self.deadline = deadline
      self.core = thread.core
      self.thread = thread
    }

    func end() {
      if !isOver.exchange(true, ordering: .acquiringAndReleasing) { Sleep.wake(job, thread, core) }
    }

    private static func wake(_ job: UnownedJob, _ thread: ResidentThread?, _ core: ResidentCore) {
      if !core.runLoop.hasSystemTime, RunLoop.currentIfMade === core.runLoop {
        wakeHere(job)
      } else if let thread {
        thread.enqueueTaskJob(job)
      } else {
        core.leave(job)
      }
    }

    /// Runs the job in the timer's call-out, on a loop whose time a test keeps.
    ///
    /// The job belongs to a task of the runtime's own, which prefers no executor. If it ran as one of this thread's
    /// jobs, it would go on in the pool, and the time would not wait for it. Run without an executor, it resumes the
    /// task that sleeps, here and at once.
    private static func wakeHere(_ job: UnownedJob) {
      // The generic executor, which has no identity.
      job.runSynchronously(on: unsafeBitCast((0, 0) as (Int, Int), to: UnownedSerialExecutor.self))
    }

    deinit {
      guard !isOver.load(ordering: .acquiring) else { return }
      let (job, core, reference) = (job, core, WeakReference(thread))
      OrphanedSleeps.shared.add(until: deadline) { Sleep.wake(job, reference.thread, core) }
    }

    private final class WeakReference: @unchecked Sendable {
      // Sendable: written once; the runtime guards weak references.
      private(set) weak var thread: ResidentThread?

      init(_ thread: ResidentThread?) {
        self.thread = thread
      }
    }
  }
#endif

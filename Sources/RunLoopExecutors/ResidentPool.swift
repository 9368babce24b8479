// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import CRunLoopSystem
  import RunLoopCore
  import RunLoopThreads
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// A pool of resident threads that share one FIFO queue of jobs.
  ///
  /// Each job is a call-out of the loop of the thread that runs it, so the instruments can see it. A blocked thread
  /// takes no job and does not delay jobs that another thread can take.
  final class ResidentPool: TaskExecutor, SchedulingExecutor, @unchecked Sendable {
    // Sendable: the state is guarded by the lock.
    private let lock = Lock()
    private var state: PoolState<Worker, UnownedJob>

    /// A thread and the runner of its single current job.
    ///
    /// It retains itself, because the pool's threads live as long as the process.
    private final class Worker: Sendable {
      let thread: ResidentThread
      private let runner = LoopJobRunner()

      init(name: String, then next: @escaping @Sendable (Worker) -> Void) throws(ThreadError) {
        thread = try ResidentThread(name: name)
        runner.runs { [self] job in
          // The generic executor, which has no identity, so no actor is isolated here.
          job.runSynchronously(on: unsafeBitCast((0, 0) as (Int, Int), to: UnownedSerialExecutor.self))
          next(self)
        }
      }

      /// Runs a job; requires that the thread has none.
      func run(_ job: UnownedJob) { _ = thread.runLoop.enqueue(LoopJob(job, runner)) }
    }

    init() {
      state = PoolState(limit: max(1, Int(crl_usable_processors())))
    }

    func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

    func enqueue(_ job: UnownedJob) {
      switch lock.withLock({ state.enqueue(job) }) {
      case .wait: break
      case .run(let worker): worker.run(job)
      case .start(let number): start(number)
      }
    }

    /// Schedules a job with the clock, which enqueues it here when it is due.
    func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      TaskClock.enqueue(job.createTrampoline(to: self), at: instant, tolerance: tolerance, clock: clock)
    }

    /// Starts a thread for the waiting jobs.
    ///
    /// If that fails, they wait for the existing threads; without any, Swift's default executor runs them.
    private func start(_ number: Int) {
      guard let worker = try? Worker(name: "tasks \(number)", then: { [unowned self] in goOn($0) }) else {
        for job in lock.withLock({ state.takeBack() }) { PlatformExecutorFactory.defaultExecutor.enqueue(job) }
        return
      }
      goOn(worker)
    }

    private func goOn(_ worker: Worker) {
      if let job = lock.withLock({ state.next(for: worker) }) { worker.run(job) }
    }
  }

  /// The idle threads of a pool, and the jobs that are waiting for a thread.
  struct PoolState<Worker, Job> {
    enum Action {
      /// A thread takes the job after its current one.
      case wait
      /// This idle thread runs the job.
      case run(Worker)
      /// Start a thread with this number, which then asks for a job.
      case start(Int)
    }

    private let limit: Int
    private var count = 0
    private var idle: [Worker] = []
    /// The waiting jobs, starting at index `first`.
    private var jobs: [Job] = []
    private var first = 0

    init(limit: Int) {
      self.limit = limit
    }

    mutating func enqueue(_ job: Job) -> Action {
      if let worker = idle.popLast() { return .run(worker) }
      jobs.append(job)
      guard count < limit else { return .wait }
      count += 1
      return .start(count)
    }

    /// Returns the next job for a thread, or nil if the thread is now idle.
    mutating func next(for worker: Worker) -> Job? {
      guard first < jobs.count else {
        idle.append(worker)
        return nil
      }
      defer {
        first += 1
        // Compacted at half size, so that the cost per job is constant.
        if first * 2 >= jobs.count {
          jobs.removeFirst(first)
          first = 0
        }
      }
      return jobs[first]
    }

    /// Notes that a thread could not be started, and returns the jobs if no thread is left to run them.
    mutating func takeBack() -> [Job] {
      count -= 1
      guard count == 0 else { return [] }
      defer { (jobs, first) = ([], 0) }
      return Array(jobs[first...])
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if compiler(>=6.3) && compiler(<6.4)
  import CRunLoopSystem
  import RunLoopCore
  import RunLoopThreads
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// Resident threads that share one queue of jobs, in the order in which they were left.
  ///
  /// Each job is a call-out of the loop of the thread that runs it, so that the instruments see it. A blocked thread
  /// takes no job, and holds up none that another can take.
  final class ResidentPool: TaskExecutor, SchedulingExecutor, @unchecked Sendable {
    // Sendable: the state is guarded by the lock.
    private let lock = Lock()
    private var state: PoolState<Worker, UnownedJob>

    /// A thread, and how it runs its one job at a time.
    ///
    /// It holds itself, as the pool's threads stay as long as the process.
    private final class Worker: Sendable {
      let thread: ResidentThread
      private let runner = LoopJobRunner()

      init(name: String, then next: @escaping @Sendable (Worker) -> Void) throws(ThreadError) {
        thread = try ResidentThread(name: name)
        runner.runs { [self] job in
          // The generic executor, which has no identity: no actor is isolated here.
          job.runSynchronously(on: unsafeBitCast((0, 0) as (Int, Int), to: UnownedSerialExecutor.self))
          next(self)
        }
      }

      /// Runs a job; the thread has none.
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

    /// Leaves a job to the clock, which queues it here at its time.
    func enqueue<C: Clock>(
      _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
      TaskClock.enqueue(job.createTrampoline(to: self), at: instant, tolerance: tolerance, clock: clock)
    }

    /// Starts a thread for the jobs that wait; without it they wait for the threads that there are, and without any of
    /// those Swift's own executor runs them.
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

  /// Which threads of a pool have nothing to do, and the jobs that no thread has yet.
  struct PoolState<Worker, Job> {
    enum Action {
      /// A thread takes the job when it is done with its own.
      case wait
      /// A thread that has no job runs it.
      case run(Worker)
      /// Start a thread with this number, which then asks for its job.
      case start(Int)
    }

    private let limit: Int
    private var count = 0
    private var idle: [Worker] = []
    /// The jobs that wait, from `first` on.
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

    /// The next job of a thread that has none; nil: it is idle.
    mutating func next(for worker: Worker) -> Job? {
      guard first < jobs.count else {
        idle.append(worker)
        return nil
      }
      defer {
        first += 1
        // Moved seldom, so that each job is moved a fixed number of times.
        if first * 2 >= jobs.count {
          jobs.removeFirst(first)
          first = 0
        }
      }
      return jobs[first]
    }

    /// Notes that a thread could not be started; returns the jobs that none will take.
    mutating func takeBack() -> [Job] {
      count -= 1
      guard count == 0 else { return [] }
      defer { (jobs, first) = ([], 0) }
      return Array(jobs[first...])
    }
  }
#endif

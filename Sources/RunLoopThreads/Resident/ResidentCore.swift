import RunLoopCore
import Synchronization

/// What a resident thread is while it lives.
///
/// The thread owns it until it has finished, whatever becomes of the handles. It is the executor's identity too, as an actor
/// keeps no reference to its executor.
final class ResidentCore: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private let lock = Lock()
  private var lifecycle = ResidentLifecycle()
  private var report = ResidentThread.StopReport()
  /// Work that waits for a date, and the timers that are to run it.
  private var delayed: [ObjectIdentifier: (task: PerformTask, timer: Timer)] = [:]
  private var finishWaiters: [@Sendable (ResidentThread.StopReport) -> Void] = []
  private var lateJobs: [LoopJob] = []
  private var runsLateJobs = false
  /// One once the loop takes work.
  private let started = Atomic<UInt32>(0)
  private let lateThread = Atomic<Int32>(0)

  let thread: Thread
  let runLoop: RunLoop

  private let keepAlive = Port()
  /// How the jobs of actors and those of tasks are run.
  ///
  /// They do not hold the core: the thread does.
  private let serialRunner = LoopJobRunner()
  private let taskRunner = LoopJobRunner()
  private let onStop: (@Sendable () -> Void)?

  private init(thread: Thread, runLoop: RunLoop, onStop: (@Sendable () -> Void)?) {
    self.thread = thread
    self.runLoop = runLoop
    self.onStop = onStop
    serialRunner.runs { [unowned self] job in job.runSynchronously(on: asUnownedSerialExecutor()) }
    taskRunner.runs { [unowned self] job in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }

  /// Starts a thread and waits until its loop takes work.
  static func start(
    name: String?, configuration: Thread.Configuration, onStart: (@Sendable () -> Void)?,
    onStop: (@Sendable () -> Void)?
  ) throws(ThreadError) -> ResidentCore {
    let thread = ResidentBody()
    thread.name = name
    thread.configuration = configuration
    guard let loop = thread.runLoop else { throw .finished(thread: thread.label) }
    let core = ResidentCore(thread: thread, runLoop: loop, onStop: onStop)
    thread.begin = { core.live(onStart: onStart) }
    thread.finish = { core.finishWork() }
    try thread.tryStart()
    while core.started.load(ordering: .acquiring) == 0 { core.started.futexWait(while: 0) }
    return core
  }

  /// The thread's life.
  private func live(onStart: (@Sendable () -> Void)?) {
    let loop = RunLoop.current
    loop.add(keepAlive, forMode: .default)
    onStart?()
    noteStarted()
    // A stop by somebody else ends a run and not the thread.
    while state == .running { loop.runUntilStopped() }
    loop.runRemainingBlocks { state == .draining }
  }

  private func noteStarted() {
    started.store(1, ordering: .releasing)
    started.futexWake(.max)
  }

  /// The end of the thread's work, however it came about.
  private func finishWork() {
    noteStarted()
    // A thread that left by `exit()` has given up what it had accepted.
    _ = stop(.immediately)
    onStop?()
    keepAlive.invalidate()
    runLoop.discardRemainingBlocks()
    finish(runLoop.itemCounts)
  }

  private func finish(_ left: (timers: Int, sources: Int)) {
    lock.lock()
    lifecycle.finish()
    report.timersLeft = left.timers
    report.sourcesLeft = left.sources
    let (report, waiters) = (report, finishWaiters)
    finishWaiters = []
    lock.unlock()
    for waiter in waiters { waiter(report) }
  }
}

// Work and stopping, from any thread.
extension ResidentCore {
  var state: ResidentThread.State { lock.withLock { lifecycle.state } }

  /// What has become of the work so far.
  var counts: ResidentThread.StopReport { lock.withLock { report } }

  /// Counts what has become of a task.
  func count(_ task: PerformTask) {
    // What the lock guards is released outside it.
    var finished: (PerformTask, Timer)?
    lock.lock()
    switch task.isAccepted ? task.state : .pending {
    case .ran: report.ran += 1
    case .cancelled: report.cancelled += 1
    case .dropped: report.dropped += 1
    case .pending, .running: break
    }
    if !delayed.isEmpty { finished = delayed.removeValue(forKey: ObjectIdentifier(task)) }
    lock.unlock()
    withExtendedLifetime(finished) {}
  }

  /// Accepts a task, or says why not.
  func post(_ task: PerformTask, inModes modes: [RunLoop.Mode]) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = task.ticket
    lock.lock()
    // Under the lock, so that a stop that comes later finds the work in the loop.
    task.isAccepted = mayAccept(task) && runLoop.perform(inModes: modes, block: ticket)
    let error = task.isAccepted ? nil : refuse(task)
    lock.unlock()
    withExtendedLifetime(ticket) {}
    if let error { throw error }
  }

  /// Accepts a task that is to run after a time.
  func post(_ task: PerformTask, afterDelay delay: Duration, inModes modes: [RunLoop.Mode]) throws(ThreadError) -> Timer
  {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = task.ticket
    let timer = Timer(deadline: runLoop.now.advanced(by: delay)) { _ in ticket() }
    lock.lock()
    task.isAccepted = mayAccept(task) && modes.allSatisfy { runLoop.add(timer, forMode: $0) }
    if task.isAccepted { delayed[ObjectIdentifier(task)] = (task, timer) }
    let error = task.isAccepted ? nil : refuse(task)
    lock.unlock()
    withExtendedLifetime(ticket) {}
    guard let error else { return timer }
    timer.invalidate()
    throw error
  }

  /// Whether work can be taken: the thread does, and nobody has cancelled the work meanwhile.
  ///
  /// Under the lock.
  private func mayAccept(_ task: PerformTask) -> Bool { lifecycle.takesWork && task.state == .pending }

  /// Under the lock.
  private func refuse(_ task: PerformTask) -> ThreadError {
    guard task.state == .pending else { return .cancelled }
    report.refused += 1
    return lifecycle.state == .finished ? .finished(thread: thread.label) : .stopping(thread: thread.label)
  }

  /// Tells the thread to stop and returns at once.
  func stop(_ policy: ResidentThread.StopPolicy) -> ResidentThread.State {
    lock.lock()
    let action = lifecycle.stop(policy)
    let state = lifecycle.state
    var waiting: [(task: PerformTask, timer: Timer)] = []
    // Held until the lock is released: a ticket that the loop refuses counts its task.
    var tickets: [@Sendable () -> Void] = []
    if action != .nothing {
      waiting = delayed.values.sorted { $0.timer.deadline < $1.timer.deadline }
      delayed = [:]
    }
    if action == .stop, policy == .afterPendingWork {
      // What is due by now was to run before this.
      let now = runLoop.now
      for entry in waiting where entry.timer.deadline <= now {
        let ticket = entry.task.ticket
        tickets.append(ticket)
        runLoop.perform(inModes: [.common], block: ticket)
      }
      waiting.removeAll { $0.timer.deadline <= now }
    }
    lock.unlock()
    withExtendedLifetime(tickets) {}
    guard action != .nothing else { return state }
    for entry in waiting {
      entry.task.end(.cancelled)
      entry.timer.invalidate()
    }
    runLoop.stopForGood()
    return state
  }

  /// Calls `body` when the thread has finished, or now if it has.
  func whenFinished(_ body: @escaping @Sendable (ResidentThread.StopReport) -> Void) {
    lock.lock()
    let isFinished = lifecycle.state == .finished
    if !isFinished { finishWaiters.append(body) }
    let report = report
    lock.unlock()
    if isFinished { body(report) }
  }
}

// The executor.
extension ResidentCore: SerialExecutor, TaskExecutor {
  func enqueue(_ job: UnownedJob) { enqueueActorJob(job) }

  func enqueueActorJob(_ job: UnownedJob) {
    leave(LoopJob(job, serialRunner))
  }

  @_implements(TaskExecutor,enqueue(_:))
  func enqueueTaskJob(_ job: UnownedJob) {
    leave(LoopJob(job, taskRunner))
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

  func isIsolatingCurrentContext() -> Bool? { isOnThread }

  func checkIsolated() {
    guard !isOnThread else { return }
    fatalError("expected to be on \(thread.label), and is on \(Thread.current.label)")
  }

  /// Whether the calling thread is this executor's.
  private var isOnThread: Bool {
    RunLoop.currentIfMade === runLoop || lateThread.load(ordering: .relaxed) == RunLoop.callingThreadID
  }

  private func leave(_ job: LoopJob) {
    guard !runLoop.enqueue(job) else { return }
    // The thread has ended. A job that comes so late is not lost: the late ones run one after the other, on a thread of
    // their own.
    lock.lock()
    lateJobs.append(job)
    let starts = !runsLateJobs
    runsLateJobs = true
    lock.unlock()
    if starts { startLateThread() }
  }

  private func startLateThread() {
    let thread = Thread { [self] in
      lateThread.store(RunLoop.callingThreadID, ordering: .relaxed)
      while let job = takeLateJob() { job.runner.run(job) }
    }
    thread.name = "late jobs"
    thread.start()
    precondition(thread.startError == nil, "no thread can be made for the jobs of one that has ended")
  }

  private func takeLateJob() -> LoopJob? {
    lock.withLock {
      guard lateJobs.isEmpty else { return lateJobs.removeFirst() }
      runsLateJobs = false
      lateThread.store(0, ordering: .relaxed)
      return nil
    }
  }
}

/// The thread of a resident thread.
private final class ResidentBody: Thread, @unchecked Sendable {
  // Sendable: both are written before the thread is started.
  var begin: (@Sendable () -> Void)?
  var finish: (@Sendable () -> Void)?

  override func main() { begin?() }

  override func finishWork() {
    finish?()
    // The closures hold the core, which holds this thread.
    begin = nil
    finish = nil
  }
}

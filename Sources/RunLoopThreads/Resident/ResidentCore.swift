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
  /// The pieces of work that were accepted.
  private var accepted = 0
  /// Work that waits for a date, and the timers that are to run it.
  private var delayed: [ObjectIdentifier: Delayed] = [:]
  private var finishWaiters: [@Sendable (ResidentThread.StopReport) -> Void] = []
  private var lateJobs: [LoopJob] = []
  private var runsLateJobs = false
  /// Whether the thread has come to the end of its work in good order.
  ///
  /// The thread's own.
  private var isDone = false
  /// One once the loop takes work.
  private let started = Atomic<UInt32>(0)
  private let lateThread = Atomic<Int32>(0)

  let thread: Thread
  let runLoop: RunLoop

  private let keepAlive = Port()
  /// How the jobs of actors are run.
  ///
  /// It does not hold the core: the thread does.
  private let serialRunner = LoopJobRunner()
  private let onStop: (@Sendable () -> Void)?

  private init(thread: Thread, runLoop: RunLoop, onStop: (@Sendable () -> Void)?) {
    self.thread = thread
    self.runLoop = runLoop
    self.onStop = onStop
    let identity = asUnownedSerialExecutor()
    serialRunner.runs { job in job.runSynchronously(on: identity) }
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
    thread.core = core
    // Published before the thread can run: what it does at its start may not wait for the one that waits for it.
    let maker = Thread.current
    maker.waiting.publish(thread) { core.hasStarted }
    defer { maker.waiting.withdraw() }
    thread.work = { core.live(onStart: onStart) }
    do {
      try thread.tryStart()
    } catch {
      thread.letGo()
      throw error
    }
    while !core.hasStarted { core.started.futexWait(while: 0) }
    return core
  }

  private var hasStarted: Bool { started.load(ordering: .acquiring) == 1 }

  /// The thread's life.
  private func live(onStart: (@Sendable () -> Void)?) {
    runLoop.add(keepAlive, forMode: .default)
    onStart?()
    noteStarted()
    // A stop by somebody else ends a run and not the thread. The thread's promise has made this loop its own.
    while state == .running { RunLoop.current.runUntilStopped() }
    runLoop.runRemainingBlocks { state == .draining }
    isDone = true
  }

  private func noteStarted() {
    started.store(1, ordering: .releasing)
    started.futexWake(.max)
  }

  /// The end of the thread's work, however it came about.
  fileprivate func finishWork() {
    noteStarted()
    // A thread that left by `exit()` has given up what it had accepted.
    if !isDone { _ = stop(.immediately) }
    // The jobs that are there run now. What comes later finds the loop closed.
    runLoop.discardRemainingBlocks()
    // A task begins with a job that leaves another: that belongs to what was there too.
    for job in takeLateJobs() { job.runner.run(job) }
    onStop?()
    keepAlive.invalidate()
    finish(runLoop.itemCounts)
  }

  private func finish(_ left: (timers: Int, sources: Int)) {
    lock.lock()
    lifecycle.finish()
    // Whoever holds it, in the middle of a post or of a stop, will find it cancelled.
    report.cancelled = accepted - report.ran - report.dropped
    report.timersLeft = left.timers
    report.sourcesLeft = left.sources
    let (report, waiters) = (report, finishWaiters)
    finishWaiters = []
    let starts = mayStartLateThread()
    lock.unlock()
    for waiter in waiters { waiter(report) }
    if starts { startLateThread() }
  }
}

// Work and stopping, from any thread.
extension ResidentCore {
  var state: ResidentThread.State { lock.withLock { lifecycle.state } }

  /// What has become of the work so far.
  var counts: ResidentThread.StopReport { lock.withLock { report } }

  /// Lets a task that is pending begin or end, and gives what it has come to; nil if it is not pending any more.
  ///
  /// A thread that gives up its work begins none. What ends here is counted in the same step: a report lacks nothing of
  /// which anybody could know.
  func claim(_ task: PerformTask, _ wanted: PerformTask.State) -> PerformTask.State? {
    lock.lock()
    let state = lifecycle.state == .stopping || lifecycle.state == .finished ? .cancelled : wanted
    let isFirst = task.leavePending(for: state)
    let finished = isFirst && state.isOver ? note(task, state) : nil
    lock.unlock()
    // What the lock guards is released outside it.
    withExtendedLifetime(finished) {}
    return isFirst ? state : nil
  }

  /// Counts what has become of a task that has begun.
  func count(_ task: PerformTask, _ state: PerformTask.State) {
    let finished = lock.withLock { note(task, state) }
    withExtendedLifetime(finished) {}
  }

  /// Under the lock.
  private func note(_ task: PerformTask, _ state: PerformTask.State) -> Delayed? {
    // The last report has counted what was still held by somebody and can never run.
    guard task.isAccepted, lifecycle.state != .finished else { return nil }
    switch state {
    case .ran: report.ran += 1
    case .cancelled: report.cancelled += 1
    case .dropped: report.dropped += 1
    case .pending, .running: preconditionFailure("work that is \(state) is not over")
    }
    return delayed.isEmpty ? nil : delayed.removeValue(forKey: ObjectIdentifier(task))
  }

  /// Accepts a task, or says why not.
  func post(_ task: PerformTask, inModes modes: [RunLoop.Mode]) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = task.ticket
    lock.lock()
    // Under the lock, so that a stop that comes later finds the work in the loop.
    task.isAccepted = mayAccept(task) && runLoop.handOff(inModes: modes, block: ticket)
    if task.isAccepted { accepted += 1 }
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
    let timer = Timer(deadline: runLoop.now.advanced(by: max(delay, .zero))) { _ in ticket() }
    lock.lock()
    task.isAccepted = mayAccept(task) && modes.allSatisfy { runLoop.add(timer, forMode: $0) }
    if task.isAccepted {
      accepted += 1
      delayed[ObjectIdentifier(task)] = Delayed(task: task, timer: timer, ticket: ticket)
    }
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
    var waiting: [Delayed] = []
    var cancelled: [PerformTask] = []
    if action != .nothing {
      waiting = delayed.values.sorted { $0.timer.deadline < $1.timer.deadline }
      delayed = [:]
    }
    let now = runLoop.now
    for entry in waiting {
      if policy == .afterPendingWork, entry.timer.deadline <= now {
        // What is due by now was to run before this.
        _ = runLoop.handOff(inModes: [.common], block: entry.ticket)
      } else if entry.task.leavePending(for: .cancelled) {
        report.cancelled += 1
        cancelled.append(entry.task)
      }
    }
    lock.unlock()
    guard action != .nothing else { return state }
    for task in cancelled { task.settle(.cancelled) }
    for entry in waiting { entry.timer.invalidate() }
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
extension ResidentCore: SerialExecutor {
  func enqueue(_ job: UnownedJob) { leave(job) }

  func leave(_ job: UnownedJob) { leave(LoopJob(job, serialRunner)) }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  func isIsolatingCurrentContext() -> Bool? { isOnThread }

  func checkIsolated() {
    guard !isOnThread else { return }
    fatalError("expected to be on \(thread.label), and is on \(Thread.current.label)")
  }

  /// Whether the calling thread is this executor's.
  private var isOnThread: Bool {
    RunLoop.currentIfMade === runLoop || lateThread.load(ordering: .relaxed) == RunLoop.callingThreadID
  }

  /// Leaves a job for the thread.
  ///
  /// Jobs that are there when the thread has done its work still run on it, before its `onStop`. A job that comes later is not
  /// lost: the late ones run one after the other when the thread has ended, on a thread made for them.
  func leave(_ job: LoopJob) {
    guard !runLoop.enqueue(job) else { return }
    lock.lock()
    lateJobs.append(job)
    let starts = mayStartLateThread()
    lock.unlock()
    if starts { startLateThread() }
  }

  /// Whether a thread for late jobs is needed, and is not there.
  ///
  /// Under the lock.
  private func mayStartLateThread() -> Bool {
    guard lifecycle.state == .finished, !lateJobs.isEmpty, !runsLateJobs else { return false }
    runsLateJobs = true
    return true
  }

  private func startLateThread() {
    let late = Thread { [self] in
      // Until then code of the actors' thread may run on it, and no two run at once.
      thread.waitForEnd()
      lateThread.store(RunLoop.callingThreadID, ordering: .relaxed)
      while let job = takeLateJob() { job.runner.run(job) }
    }
    late.name = "late jobs"
    late.start()
    precondition(late.startError == nil, "no thread can be made for the jobs of one that has ended")
  }

  private func takeLateJobs() -> [LoopJob] {
    lock.withLock {
      defer { lateJobs = [] }
      return lateJobs
    }
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

/// Work that waits for a date, the timer that is to run it, and what the timer calls.
private struct Delayed {
  let task: PerformTask
  let timer: Timer
  let ticket: @Sendable () -> Void
}

/// The thread of a resident thread.
private final class ResidentBody: Thread, @unchecked Sendable {
  // Sendable: the block and the core are written before the thread is started and given up by its last step, or instead of a
  // start; the reference to the core for others is weak, and written before anybody has it.
  private var block: BareBlock?
  private var ownCore: ResidentCore?
  private weak var sharedCore: ResidentCore?

  var core: ResidentCore? {
    get { sharedCore }
    set {
      ownCore = newValue
      sharedCore = newValue
    }
  }

  /// What the thread does.
  var work: (@Sendable () -> Void)? {
    get { nil }
    set { block = newValue.map(BareBlock.init) }
  }

  override var keeper: ResidentCore? { sharedCore }

  override func main() {
    // No frame holds the core: a thread that leaves by `exit()` gives it up at its end.
    let words = block?.words
    words?.call()
  }

  override func finishWork() {
    ownCore?.finishWork()
    letGo()
  }

  /// The core holds this thread, and this thread the core, until then.
  func letGo() {
    block = nil
    ownCore = nil
  }
}

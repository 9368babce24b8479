// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// What a resident thread is while it lives.
///
/// The thread owns it until it has finished, whatever becomes of the handles. It is the executor's identity too, as an
/// actor keeps no reference to its executor.
final class ResidentCore: Awaited, @unchecked Sendable {
  // Sendable: the variables are guarded by the lock, except those whose comment says otherwise.

  let lock = Lock()
  @exclusivity(unchecked) var lifecycle = ResidentLifecycle()
  @exclusivity(unchecked) var report = ResidentThread.StopReport()
  /// The pieces of work that were accepted.
  @exclusivity(unchecked) private var accepted = 0
  /// Work that waits for a date, and the timers that are to run it.
  @exclusivity(unchecked) private var delayed: [ObjectIdentifier: Delayed] = [:]
  /// The place in the order of all posts up to which the thread drains: that of the last before the stop.
  private var drainEnd: UInt64 = .max
  /// The jobs that the loop takes no more.
  var lateJobs: [LoopJob] = []
  /// Whether late jobs are run elsewhere, which begins when the thread has ended.
  var canRunLateJobs = false
  var runsLateJobs = false
  var lateQueue: DispatchQueue?
  /// Whether the thread has come to the end of its work in good order.
  ///
  /// The thread's own.
  private var isDone = false
  /// Whether the loop has been closed, and whether `onStop` has been called: once, also if it leaves by `exit()`.
  ///
  /// The thread's own.
  private var hasClosed = false
  private var hasCalledStop = false
  /// One once the loop takes work.
  private let started = AwaitedWord(0)
  // The thread that runs the late jobs, zero while none does. Relaxed: a thread finds its own number, which it has
  // stored itself, or another's.
  let lateThread = Atomic<Int32>(0)

  let thread: Thread
  let runLoop: RunLoop

  /// The tasks that sleep on the loop, if a test keeps its time.
  let sleepers = Sleepers()

  private let keepAlive = ResidentKeepAlive()
  /// How the jobs of actors are run.
  ///
  /// It does not hold the core: the thread does.
  let serialRunner = LoopJobRunner()
  /// The jobs that the thread has run.
  let jobCount = JobCount()
  private let drainLimits: ResidentThread.DrainLimits
  private let onStop: (@Sendable () -> Void)?

  private init(
    thread: Thread, runLoop: RunLoop, drainLimits: ResidentThread.DrainLimits, onStop: (@Sendable () -> Void)?
  ) {
    self.thread = thread
    self.runLoop = runLoop
    self.drainLimits = drainLimits
    self.onStop = onStop
    let identity = asUnownedSerialExecutor()
    serialRunner.runs { [jobCount] job in
      jobCount.add()
      job.runSynchronously(on: identity)
    }
  }

  /// Starts a thread and waits until its loop takes work.
  static func start(
    name: String?, configuration: Thread.Configuration, drainLimits: ResidentThread.DrainLimits, loop: RunLoop? = nil,
    onStart: (@Sendable () -> Void)?, onStop: (@Sendable () -> Void)?
  ) throws(ThreadError) -> ResidentCore {
    let thread = loop.map(ResidentBody.init(loop:)) ?? ResidentBody()
    thread.name = name
    thread.configuration = configuration
    guard let loop = thread.runLoop else { throw .finished(thread: thread.label) }
    let core = ResidentCore(thread: thread, runLoop: loop, drainLimits: drainLimits, onStop: onStop)
    thread.core = core
    // Until then code of the actors' thread may run on it, and no two run at once.
    thread.ending.whenCome { core.beginLateJobs() }
    thread.work = { core.live(onStart: onStart) }
    // What the thread does at its start may not wait for the one that waits for it.
    let me = Thread.current
    try me.beginWait(for: core, of: thread)
    defer { me.endWait() }
    do throws(ThreadError) {
      try thread.tryStart()
    } catch {
      thread.letGo()
      throw error
    }
    try me.sleep(for: core, of: thread, until: .never)
    return core
  }

  // The start, for which the maker waits.

  var isOver: Bool { started.value == 1 }

  func wait(until deadline: Tick, by looker: inout Looker) { started.wait(until: deadline, by: &looker) { $0 == 1 } }

  /// The thread's life.
  private func live(onStart: (@Sendable () -> Void)?) {
    // The loop, which the thread's promise makes its own before other threads can see it, is not held by this frame: a
    // thread that leaves by `exit()` leaves the frame as it is.
    let loop = Unmanaged.passUnretained(RunLoop.current)
    runLoop.add(keepAlive, forMode: .default)
    onStart?()
    noteStarted()
    // A stop of the loop by other code ends a run, and not the thread.
    while state == .running { loop._withUnsafeGuaranteedRef { _ = $0.runUntilStopped() } }
    let lastPost = lock.withLock { self.drainEnd }
    runLoop.runRemainingBlocks(through: lastPost) { state == .draining }
    isDone = true
  }

  private func noteStarted() { started.finish(1) }

  /// The end of the thread's work, however it came about; again, if a part of it leaves by `exit()`.
  func finishWork() {
    noteStarted()
    // A thread that left by `exit()` has given up what it had accepted.
    if !isDone { _ = stop(.immediately) }
    if !hasClosed {
      hasClosed = true
      close()
    }
    if !hasCalledStop {
      hasCalledStop = true
      onStop?()
    }
    guard state != .finished else { return }
    keepAlive.invalidate()
    finish(runLoop.itemCounts)
  }

  /// Closes the loop for blocks and jobs, and runs the jobs that are there and, within limits, those that they leave.
  ///
  /// At an immediate stop those are the jobs that are there, and one more round: a task that is there may begin with a
  /// call of an actor of the thread, which is another job.
  private func close() {
    let isDraining = state == .draining
    let limits = isDraining ? drainLimits : ResidentThread.DrainLimits(rounds: 2, time: .seconds(Int64.max))
    var waiting: [LoopJob] = []
    runLoop.discardRemainingBlocks { waiting.append($0) }
    lock.withLock { lateJobs = waiting + lateJobs }
    let deadline = Tick.after(limits.time)
    for _ in 0..<max(0, limits.rounds) {
      let round = takeLateJobs()
      guard !round.isEmpty else { return }
      for (index, job) in round.enumerated() {
        guard Tick.monotonicNow < deadline else {
          lock.withLock { lateJobs = Array(round[index...]) + lateJobs }
          return
        }
        job.runner.run(job)
      }
    }
  }

  private func finish(_ left: (timers: Int, sources: Int)) {
    lock.lock()
    lifecycle.finish()
    // Whoever holds it, in the middle of a post or of a stop, will find it cancelled.
    report.cancelledCount = accepted - report.completedCount - report.droppedCount
    report.jobCount = jobCount.value
    report.lateJobCount = lateJobs.count
    report.remainingTimerCount = left.timers
    report.remainingSourceCount = left.sources
    lock.unlock()
  }
}

// Work and stopping, from any thread.
extension ResidentCore {
  var state: ResidentThread.State { lock.withLock { lifecycle.state } }

  /// What has become of the work so far.
  var counts: ResidentThread.StopReport {
    lock.withLock {
      // What runs late, and elsewhere, the thread has not run.
      if lifecycle.state != .finished { report.jobCount = jobCount.value }
      return report
    }
  }

  /// Lets a task that is pending begin or end, and returns what it has come to; nil if it is not pending any more.
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
    lock.lock()
    let finished = note(task, state)
    lock.unlock()
    withExtendedLifetime(finished) {}
  }

  /// Under the lock.
  private func note(_ task: PerformTask, _ state: PerformTask.State) -> Delayed? {
    // The last report has counted what was still held by somebody and can never run.
    guard task.isAccepted, lifecycle.state != .finished else { return nil }
    switch state {
    case .ran: report.completedCount += 1
    case .cancelled: report.cancelledCount += 1
    case .dropped: report.droppedCount += 1
    case .pending, .running: fatalError("work that is \(state) is not over")
    }
    return delayed.isEmpty ? nil : delayed.removeValue(forKey: ObjectIdentifier(task))
  }

  /// Accepts a task, or says why not.
  func post(_ task: PerformTask, inModes modes: [RunLoop.Mode]) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = PerformTask.Ticket(task)
    lock.lock()
    // Under the lock, so that a stop that comes later finds the work in the loop.
    task.isAccepted = mayAccept(task) && runLoop.leaveHandOff(inModes: modes, from: task.origin) { ticket.run() }
    if task.isAccepted { accepted += 1 }
    let error = task.isAccepted ? nil : reject(task)
    lock.unlock()
    withExtendedLifetime(ticket) {}
    if let error { throw error }
    runLoop.wakeForHandOffs(inModes: modes)
  }

  /// Accepts a task that is to run after a time.
  func post(_ task: PerformTask, afterDelay delay: Duration, inModes modes: [RunLoop.Mode]) throws(ThreadError) -> Timer
  {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = PerformTask.Ticket(task)
    let timer = Timer(deadline: runLoop.instant(after: max(delay, .zero))) { _ in ticket.run() }
    lock.lock()
    task.isAccepted = mayAccept(task) && modes.allSatisfy { runLoop.offer(timer, forMode: $0, from: task.origin) }
    if task.isAccepted {
      accepted += 1
      delayed[ObjectIdentifier(task)] = Delayed(task: task, timer: timer, ticket: ticket)
    }
    let error = task.isAccepted ? nil : reject(task)
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
  private func reject(_ task: PerformTask) -> ThreadError {
    guard task.state == .pending else { return .cancelled }
    report.rejectedCount += 1
    return lifecycle.state == .finished ? .finished(thread: thread.label) : .stopping(thread: thread.label)
  }

  /// Asks the thread to stop and returns at once.
  func stop(_ policy: ResidentThread.StopPolicy) -> ResidentThread.State {
    // By their dates, outside the lock; what is accepted between comes behind them.
    let dated = lock.withLock { Array(delayed.values) }.map { ($0, $0.timer.deadline) }.sorted { $0.1 < $1.1 }
    let now = runLoop.now
    lock.lock()
    let action = lifecycle.stop(policy)
    let state = lifecycle.state
    var waiting: [(Delayed, deadline: SuspendingClock.Instant)] = []
    var cancelled: [PerformTask] = []
    if action != .nothing {
      waiting = dated.filter { delayed.removeValue(forKey: ObjectIdentifier($0.0.task)) != nil }
      for entry in delayed.values { waiting.append((entry, entry.timer.deadline)) }
      delayed = [:]
    }
    for (entry, deadline) in waiting {
      if policy == .afterPendingWork, deadline <= now {
        // What is due by now was to run before this.
        _ = runLoop.handOff(inModes: [.common], from: entry.task.origin, block: entry.ticket.run)
      } else if entry.task.leavePending(for: .cancelled) {
        report.cancelledCount += 1
        cancelled.append(entry.task)
      }
    }
    if action == .stop { drainEnd = runLoop.lastPost }
    lock.unlock()
    guard action != .nothing else { return state }
    for task in cancelled { task.settle(.cancelled) }
    for (entry, _) in waiting { entry.timer.invalidate() }
    runLoop.stopForGood()
    return state
  }

  /// Calls `body` when the thread has ended, as a join sees it, or now if it has.
  func whenFinished(_ body: @escaping @Sendable (ResidentThread.StopReport) -> Void) {
    guard !thread.ending.hasCome else { return body(counts) }
    // Elsewhere: what goes on then may be an executor of a user's, in the thread's last destructor.
    thread.ending.whenCome { [self] in DispatchQueue.global().async { [self] in body(counts) } }
  }
}

/// Work that waits for a date, and the timer that is to run it by its ticket.
private struct Delayed {
  let task: PerformTask
  let timer: Timer
  let ticket: PerformTask.Ticket
}

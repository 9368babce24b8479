// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// The state of a resident thread.
///
/// The thread owns it until it has finished, even if all handles are released. It is also the identity of the serial
/// executor, because actors do not retain their executor.
final class ResidentCore: Awaited, @unchecked Sendable {
  // Sendable: the variables are guarded by the lock, except those whose comment says otherwise.

  let lock = Lock()
  @exclusivity(unchecked) var lifecycle = ResidentLifecycle()
  @exclusivity(unchecked) var report = ResidentThread.StopReport()
  /// The number of accepted work items.
  @exclusivity(unchecked) private var accepted = 0
  /// The work items that wait for a date, with their timers.
  @exclusivity(unchecked) private var delayed: [ObjectIdentifier: Delayed] = [:]
  /// The position of the last post before the stop; the thread drains up to it.
  private var drainEnd: UInt64 = .max
  /// The jobs that the loop no longer accepts.
  var lateJobs: [LoopJob] = []
  /// Whether late jobs may run on the queue, which requires that the thread has ended.
  var canRunLateJobs = false
  var runsLateJobs = false
  var lateQueue: DispatchQueue?
  /// Whether the thread finished its work normally; used only by the thread itself.
  private var isDone = false
  /// Whether the loop has been closed and whether `onStop` has been called.
  ///
  /// Each happens once, even if user code leaves by `exit()`. Used only by the thread itself.
  private var hasClosed = false
  private var hasCalledStop = false
  /// Set to 1 when the loop accepts work.
  private let started = AwaitedWord(0)
  // The thread that runs late jobs, or zero. Relaxed ordering suffices, because a thread only compares the value with
  // its own ID, which no other thread stores.
  let lateThread = Atomic<Int32>(0)

  let thread: Thread
  let runLoop: RunLoop

  /// The tasks that sleep on the loop while it runs on virtual time.
  let sleepers = Sleepers()

  private let keepAlive = ResidentKeepAlive()
  /// Runs the jobs of actors; does not retain the core, which the thread owns.
  let serialRunner = LoopJobRunner()
  /// The number of jobs that the thread has run.
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

  /// Starts a thread and waits until its loop accepts work.
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
    // Late jobs wait until then, because the ending thread may still run isolated code and an actor must not run twice
    // at once.
    thread.ending.whenCome { core.beginLateJobs() }
    thread.work = { core.live(onStart: onStart) }
    // Publishes the wait first: if the thread's `onStart` waits for this thread, that is detected as a deadlock.
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

  // The caller of `start` waits for these.

  var isOver: Bool { started.value == 1 }

  func wait(until deadline: Tick, by looker: inout Looker) { started.wait(until: deadline, by: &looker) { $0 == 1 } }

  /// The body of the thread.
  private func live(onStart: (@Sendable () -> Void)?) {
    // This frame does not retain the loop, because `exit()` would abandon the frame and leak the reference. The
    // thread's promise installs the loop before other threads can see it.
    let loop = Unmanaged.passUnretained(RunLoop.current)
    runLoop.add(keepAlive, forMode: .default)
    onStart?()
    noteStarted()
    // If other code stops the loop, only the current run ends.
    while state == .running { loop._withUnsafeGuaranteedRef { _ = $0.runUntilStopped() } }
    let lastPost = lock.withLock { self.drainEnd }
    runLoop.runRemainingBlocks(through: lastPost) { state == .draining }
    isDone = true
  }

  private func noteStarted() { started.finish(1) }

  /// Ends the thread's work; called again if user code inside leaves by `exit()`.
  func finishWork() {
    noteStarted()
    // A thread that left by `exit()` cancels its remaining work.
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

  /// Closes the loop for blocks and jobs, and then runs the remaining jobs and, within limits, the jobs that they
  /// enqueue.
  ///
  /// An immediate stop runs the remaining jobs and one more round, because a task may begin with a call to one of the
  /// thread's actors, which is a separate job.
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
    // Includes tasks that another thread is just posting or stopping; it will find them cancelled.
    report.cancelledCount = accepted - report.completedCount - report.droppedCount
    report.jobCount = jobCount.value
    report.lateJobCount = lateJobs.count
    report.remainingTimerCount = left.timers
    report.remainingSourceCount = left.sources
    lock.unlock()
  }
}

// Posting work and stopping, from any thread.
extension ResidentCore {
  var state: ResidentThread.State { lock.withLock { lifecycle.state } }

  /// The current counts of the work.
  var counts: ResidentThread.StopReport {
    lock.withLock {
      // Excludes late jobs, which the thread did not run.
      if lifecycle.state != .finished { report.jobCount = jobCount.value }
      return report
    }
  }

  /// Moves a pending task to `wanted` and returns its new state, or nil if it is no longer pending.
  ///
  /// A stopping thread cancels the task instead. A task that ends here is counted in the same critical section, so a
  /// report includes every outcome that other code can observe.
  func claim(_ task: PerformTask, _ wanted: PerformTask.State) -> PerformTask.State? {
    lock.lock()
    let state = lifecycle.state == .stopping || lifecycle.state == .finished ? .cancelled : wanted
    let isFirst = task.leavePending(for: state)
    let finished = isFirst && state.isOver ? note(task, state) : nil
    lock.unlock()
    // Released after unlocking.
    withExtendedLifetime(finished) {}
    return isFirst ? state : nil
  }

  /// Counts the outcome of a task that had begun.
  func count(_ task: PerformTask, _ state: PerformTask.State) {
    lock.lock()
    let finished = note(task, state)
    lock.unlock()
    withExtendedLifetime(finished) {}
  }

  /// Counts an outcome; requires the lock.
  private func note(_ task: PerformTask, _ state: PerformTask.State) -> Delayed? {
    // The final report has already counted this task as cancelled.
    guard task.isAccepted, lifecycle.state != .finished else { return nil }
    switch state {
    case .ran: report.completedCount += 1
    case .cancelled: report.cancelledCount += 1
    case .dropped: report.droppedCount += 1
    case .pending, .running: fatalError("work that is \(state) is not over")
    }
    return delayed.isEmpty ? nil : delayed.removeValue(forKey: ObjectIdentifier(task))
  }

  /// Accepts a task, or throws the reason for rejecting it.
  func post(_ task: PerformTask, inModes modes: [RunLoop.Mode]) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    let ticket = PerformTask.Ticket(task)
    lock.lock()
    // With the lock held, so that a later stop finds the work in the loop.
    task.isAccepted = mayAccept(task) && runLoop.leaveHandOff(inModes: modes, from: task.origin) { ticket.run() }
    if task.isAccepted { accepted += 1 }
    let error = task.isAccepted ? nil : reject(task)
    lock.unlock()
    withExtendedLifetime(ticket) {}
    if let error { throw error }
    runLoop.wakeForHandOffs(inModes: modes)
  }

  /// Accepts a task that runs after a delay.
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

  /// Whether the task can be accepted: the thread accepts work, and the task has not been cancelled.
  ///
  /// Requires the lock.
  private func mayAccept(_ task: PerformTask) -> Bool { lifecycle.takesWork && task.state == .pending }

  /// Counts a rejected task and returns the reason; requires the lock.
  private func reject(_ task: PerformTask) -> ThreadError {
    guard task.state == .pending else { return .cancelled }
    report.rejectedCount += 1
    return lifecycle.state == .finished ? .finished(thread: thread.label) : .stopping(thread: thread.label)
  }

  /// Requests a stop and returns immediately.
  func stop(_ policy: ResidentThread.StopPolicy) -> ResidentThread.State {
    // Sorted by deadline without the lock. Work accepted in the meantime is appended.
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
        // The work is already due, so it precedes the stop.
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

  /// Calls `body` once the thread has ended as seen by `join`, immediately if it already has.
  func whenFinished(_ body: @escaping @Sendable (ResidentThread.StopReport) -> Void) {
    guard !thread.ending.hasCome else { return body(counts) }
    // On a queue, because resuming may run a user's executor, which must not happen in the thread's last destructor.
    thread.ending.whenCome { [self] in DispatchQueue.global().async { [self] in body(counts) } }
  }
}

/// Delayed work with its timer and the ticket through which the timer runs it.
private struct Delayed {
  let task: PerformTask
  let timer: Timer
  let ticket: PerformTask.Ticket
}

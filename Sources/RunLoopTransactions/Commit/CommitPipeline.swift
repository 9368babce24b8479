// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// One commit for a turn of a loop, no matter how many changes were made in it.
///
/// Code that changes something marks the pipeline with ``setNeedsCommit()``. When the loop is about to wait, or a run
/// of it ends, the pipeline performs its stages once: a server writes the changes of a turn in one transaction, an
/// interface draws them in one frame.
///
/// ```swift
/// let pipeline = CommitPipeline(loop: RunLoop.current)
/// pipeline.add(.init(name: "write") { database.write(changes.take()) })
/// // In any call-out, any number of times:
/// changes.add(change)
/// pipeline.setNeedsCommit()
/// pipeline.whenCommitted { report in if report.isCommitted { client.acknowledge() } }
/// ```
///
/// **The frame interval.** The pipeline by itself makes at most one commit for each interval; the first after a rest is
/// made at once, when the loop reaches its wait. A loop that has something to do in every pass does not reach its wait.
/// Then the frame clock, a timer of the common modes that the first mark sets, commits an interval after the previous
/// commit, or after the mark. The timer keeps the modes alive while a commit is due, and has no date otherwise: a loop
/// at rest is not woken.
///
/// A pipeline belongs to its loop, which keeps it until its thread ends, unless it is taken out with ``invalidate()``.
/// A loop may have a second pipeline, which commits by itself.
///
/// The corresponding part of Apple's systems is the implicit transaction of Core Animation, with the same order,
/// ``TurnOrder/commit``, and the same stages: before waiting and at the exit of a run, in the common modes and in
/// `UIInitializationRunLoopMode`.
public final class CommitPipeline: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock, but for those that are the loop's thread's alone.

  private let loop: RunLoop
  private let lock = Lock()
  @exclusivity(unchecked) private var state: CommitState
  @exclusivity(unchecked) private var clock: FrameClock?
  /// The stages by the observers that perform them, in order.
  @exclusivity(unchecked) private var groups: ContiguousArray<StageGroup> = []
  @exclusivity(unchecked) private var callbacks = CommitCallbacks()

  // The loop's thread only.

  /// The commit that is under way.
  @exclusivity(unchecked) private var progress: Progress?
  /// What performs the groups.
  @exclusivity(unchecked) private var observers: ContiguousArray<RunLoop.Observer> = []
  /// Whether a stage is being performed.
  @exclusivity(unchecked) private var isPerforming = false
  @exclusivity(unchecked) private var lastNumber = 0
  @exclusivity(unchecked) private var isInvalidated = false
  /// In which run the loop last came to its wait, and how many waits there had been.
  @exclusivity(unchecked) private var arrival = (runDepth: -1, waits: -1)

  private struct Progress {
    let groups: ContiguousArray<StageGroup>
    /// The first group that is still to be performed.
    var next = 0
    /// The depth of the run that commits: those that are nested in it leave the commit alone.
    let runDepth: Int
    let cause: CommitReport.Cause
    let began: Tick

    /// Whether the loop has called the pipeline, and not a user's function.
    var isCallOut: Bool { cause != .flush }
  }

  /// Makes the pipeline of a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - loop: The loop on whose thread the commits are made. If its thread has ended, none is made.
  ///   - frameInterval: The shortest time between two commits that the pipeline makes by itself, and the time after
  ///     which a loop that never reaches its wait commits. Zero or less means no limit.
  public init(loop: RunLoop, frameInterval: Duration = .milliseconds(16)) {
    self.loop = loop
    state = CommitState(interval: Int64(saturating: frameInterval))
    clock = FrameClock(loop: loop) { [unowned self] in advance(to: .max, .deadline) }
    guard loop.attach(self) else {
      loopDidEnd()
      return
    }
    lock.withLock {
      observe(TurnOrder.commit)
      // It comes to the end of every commit, whatever stages there are.
      observe(TurnOrder.afterCommit)
    }
  }

  /// Adds a stage that every commit performs from the next on.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n) in the stages.
  public func add(_ stage: Stage) {
    lock.withLock {
      let order = min(stage.order, TurnOrder.afterCommit)
      if let index = groups.firstIndex(where: { $0.order == order }) {
        groups[index].insert(stage)
      } else if state.phase != .ended {
        observe(order, stage)
      }
    }
  }

  /// Asks for a commit at the end of this turn.
  ///
  /// Calling it again before the commit has no further effect. A sleeping loop is woken, or, if the frame interval is
  /// not over, sleeps until it is. In a stage it asks for the next commit; see ``Stage/init(name:order:perform:)``. If
  /// the loop's thread has ended, it has no effect. Can be called from any thread.
  ///
  /// - Complexity: O(1), without an allocation.
  public func setNeedsCommit() {
    lock.lock()
    let wakes = apply(state.mark { loop.clockNow })
    lock.unlock()
    if wakes { comeToWait() }
  }

  /// Commits now, if something is marked, whether the frame interval is over or not.
  ///
  /// In a stage it has no effect; between the stages of a commit it performs the rest of them.
  ///
  /// - Precondition: The calling thread is the loop's.
  public func flush() {
    // A thread that ends may flush after its loop has ended, when no commit is left.
    guard loop.isOfCallingThread else {
      fatalError(
        "flush() of a commit pipeline of \(loop.threadDescription) was called by \(RunLoop.callingThreadDescription)")
    }
    advance(to: .max, .flush)
  }

  /// Calls a closure after the commit that covers what has been marked so far; if nothing is marked, after the next.
  ///
  /// The closure is called exactly once, on the loop's thread, in the order of these calls, after the last stage. If
  /// the loop's thread ends first, or the pipeline is taken out, it is called there with the cause
  /// ``CommitReport/Cause/loopEnded`` or ``CommitReport/Cause/invalidated``; if that has happened already, the calling
  /// thread calls it at once. Can be called from any thread.
  ///
  /// - Parameter body: Called with a report of the commit. It may run the loop, and mark the pipeline.
  public func whenCommitted(_ body: @escaping @Sendable (CommitReport) -> Void) {
    let end: CommitReport.Cause? = lock.withLock {
      switch state.phase {
      case .ended: return isInvalidated ? .invalidated : .loopEnded
      case .remarked: callbacks.appendLater(.init(call: body))
      case .resting, .marked, .due, .collecting, .committing: callbacks.append(.init(call: body))
      }
      return nil
    }
    if let end { body(endReport(end)) }
  }

  /// Takes the pipeline out of its loop: it makes no more commits.
  ///
  /// Marked changes are not committed; call ``flush()`` before if they are to be. Stages that have not been performed
  /// are not performed any more, and are released. Closures that wait for a commit are called before this returns, with
  /// the cause ``CommitReport/Cause/invalidated``. Calling it again has no effect.
  ///
  /// - Precondition: The calling thread is the loop's, or the loop's thread has ended.
  public func invalidate() {
    lock.lock()
    let hasEnded = state.phase == .ended
    if !hasEnded, loop !== RunLoop.currentIfMade {
      lock.unlock()
      fatalError(
        "invalidate() of a commit pipeline of \(loop.threadDescription) was called by \(RunLoop.callingThreadDescription)"
      )
    }
    isInvalidated = isInvalidated || !hasEnded
    lock.unlock()
    guard !hasEnded else { return }
    loop.detach(self)
    end(.invalidated)
  }

  /// Whether the commit that is under way was begun by the loop, and not by ``flush()``.
  ///
  /// The loop's thread only.
  package var isCalledOut: Bool { progress?.isCallOut ?? false }

  /// How many commits there have been.
  ///
  /// The loop's thread only.
  package var commitCount: Int { lastNumber }
}

extension CommitPipeline {
  /// Sees to it that the loop comes to its wait, where it commits, before it sleeps.
  ///
  /// A loop that has been there in this pass, or waits, needs another pass for that. It may wait on this very thread,
  /// in another loop, whose call-outs run meanwhile.
  private func comeToWait() {
    if loop === RunLoop.currentIfMade, arrival.runDepth == loop.runDepth, arrival.waits != loop.waits, !loop.isWaiting {
      return
    }
    loop.wakeUp()
  }
}

// Under the lock.
extension CommitPipeline {
  /// Does what the state asks for; true if the loop is to be woken.
  private func apply(_ action: CommitState.Action) -> Bool {
    switch action {
    case .nothing, .commit: return false
    case .arm(let date, let wakes):
      clock?.arm(at: date)
      return wakes
    case .disarm:
      clock?.disarm()
      return false
    }
  }

  /// Makes a group of stages, with the observer that performs it.
  private func observe(_ order: Int, _ stage: Stage? = nil) {
    var group = StageGroup(order: order)
    if let stage { group.insert(stage) }
    groups.insert(group, at: groups.firstIndex { $0.order > order } ?? groups.endIndex)
    let observer = RunLoop.Observer(activities: [.beforeWaiting, .exit], order: order) { [unowned self] _, activity in
      if order == TurnOrder.afterCommit, activity == .beforeWaiting { arrival = (loop.runDepth, loop.waits) }
      let isLast = order == TurnOrder.afterCommit || (order == TurnOrder.commit && !loop.isInCommonMode)
      advance(to: isLast ? .max : order, activity == .exit ? .exit : .beforeWaiting)
    }
    observers.append(observer)
    loop.add(observer, forMode: .common)
    // As in Apple's: the mode of an application's start knows the commit and nothing else.
    if order == TurnOrder.commit { loop.add(observer, forMode: .initialization) }
  }
}

// The loop's thread.
extension CommitPipeline {
  /// Begins a commit if one is due, and performs its stages up to an order.
  private func advance(to order: Int, _ cause: CommitReport.Cause) {
    guard !isPerforming else { return }
    if progress == nil { begin(cause) }
    guard var commit = progress, commit.runDepth == loop.runDepth else { return }
    while commit.next < commit.groups.count, commit.groups[commit.next].order <= order {
      let group = commit.groups[commit.next]
      commit.next += 1
      progress = commit
      perform(group, isCallOut: commit.isCallOut)
      // A stage may have taken the pipeline out.
      guard progress != nil else { return }
    }
    if commit.next == commit.groups.count { finish(commit) }
  }

  private func begin(_ cause: CommitReport.Cause) {
    lock.lock()
    let action =
      switch cause {
      case .deadline: state.fire(at: loop.clockNow)
      case .flush: state.flush { loop.clockNow }
      case .beforeWaiting, .exit, .loopEnded, .invalidated: state.arrive { loop.clockNow }
      }
    _ = apply(action)
    if action == .commit {
      progress = Progress(groups: groups, runDepth: loop.runDepth, cause: cause, began: loop.clockNow)
    }
    lock.unlock()
  }

  private func perform(_ group: StageGroup, isCallOut: Bool) {
    if group.order >= TurnOrder.commit { lock.withLock { state.close() } }
    isPerforming = true
    for stage in group.stages where progress != nil {
      if isCallOut, stage.isNamed { noteCall(of: CalledBody(stage.perform)) }
      stage.perform()
    }
    isPerforming = false
  }

  private func finish(_ commit: Progress) {
    progress = nil
    lastNumber += 1
    let now = loop.clockNow
    lock.lock()
    let report = CommitReport(
      number: lastNumber, marks: state.marks, cause: commit.cause, began: commit.began.instant,
      duration: .nanoseconds(now.nanoseconds - commit.began.nanoseconds))
    let wakes = apply(state.finish { now })
    callbacks.finish(report)
    lock.unlock()
    if wakes { comeToWait() }
    callBack(isCallOut: commit.isCallOut)
  }

  /// Calls the closures whose commit was made.
  ///
  /// One leaves the list at a time: a closure may run the loop, which calls the others, or end the thread.
  private func callBack(isCallOut: Bool) {
    while let (body, report) = lock.withLock({ callbacks.takeFirst() }) {
      if isCallOut { noteCall(of: body) }
      body.call(report)
    }
  }

  private func endReport(_ cause: CommitReport.Cause) -> CommitReport {
    CommitReport(number: 0, marks: 0, cause: cause, began: loop.clockNow.instant, duration: .zero)
  }

  /// Ends the pipeline, and calls the closures that wait.
  private func end(_ cause: CommitReport.Cause) {
    let report = endReport(cause)
    lock.lock()
    _ = apply(state.end())
    let ended = (clock, observers, groups)
    clock = nil
    observers = []
    groups = []
    callbacks.finish(report)
    callbacks.finish(report)
    lock.unlock()
    ended.0?.invalidate()
    for observer in ended.1 { observer.invalidate() }
    progress = nil
    callBack(isCallOut: false)
  }
}

extension CommitPipeline: LoopAttachment {
  package func loopDidEnd() { end(.loopEnded) }
}

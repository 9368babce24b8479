// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A pipeline that makes one commit per turn of a loop, no matter how many changes were made.
///
/// Code that makes a change marks the pipeline with ``setNeedsCommit()``. When the loop is about to wait, or when a
/// run ends, the pipeline performs its stages once. A server can write the changes of a turn in one transaction,
/// and a user interface can draw them in one frame.
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
/// **The frame interval.** The pipeline makes at most one commit per interval on its own. The first commit after an
/// idle period is made as soon as the loop reaches its wait. A loop that has work in every pass never reaches its
/// wait. In that case the frame clock, a timer in the common modes that the first mark arms, commits one interval
/// after the previous commit, or after the mark if that interval has already passed. The timer keeps the modes
/// alive only while a commit is due, and an idle loop is never woken.
///
/// The loop retains the pipeline until the loop's thread ends or ``invalidate()`` is called. A loop can have
/// several pipelines, which commit independently of each other.
///
/// The corresponding part of Apple's systems is the implicit transaction of Core Animation. It uses the same order,
/// ``TurnOrder/commit``, and the same activities: before waiting and on exit, in the common modes and in
/// `UIInitializationRunLoopMode`.
public final class CommitPipeline: @unchecked Sendable {
  // Sendable: the lock guards the variables up to `callbacks`, `observers` and `isInvalidated`. The others are used
  // only on the loop's thread, or on the thread that ends the pipeline after that thread has ended.

  private let loop: RunLoop
  private let lock = Lock()
  @exclusivity(unchecked) private var state: CommitState
  @exclusivity(unchecked) private var clock: FrameClock?
  /// The stages, grouped by the observers that perform them, in order.
  @exclusivity(unchecked) private var groups: ContiguousArray<StageGroup> = []
  @exclusivity(unchecked) private var callbacks = CommitCallbacks()

  /// The commit in progress.
  @exclusivity(unchecked) private var progress: Progress?
  /// The observers that perform the groups.
  @exclusivity(unchecked) private var observers: ContiguousArray<RunLoop.Observer> = []
  /// Whether a stage is being performed.
  @exclusivity(unchecked) private var isPerforming = false
  @exclusivity(unchecked) private var lastNumber = 0
  @exclusivity(unchecked) private var isInvalidated = false
  /// The run depth at which the loop last reached its wait, and its number of waits at that time.
  @exclusivity(unchecked) private var arrival = (runDepth: -1, waits: -1)

  private struct Progress {
    let groups: ContiguousArray<StageGroup>
    /// The index of the next group to perform.
    var next = 0
    /// The depth of the run that commits; runs nested in it do not continue the commit.
    let runDepth: Int
    let cause: CommitReport.Cause
    let began: Tick

    /// Whether the loop called the pipeline, as opposed to user code.
    var isCallOut: Bool { cause != .flush }
  }

  /// Creates a pipeline for a loop.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - loop: The loop on whose thread commits are made. No commits are made if its thread has ended.
  ///   - frameInterval: The minimum time between two commits that the pipeline makes on its own, and the time after
  ///     which it commits if the loop never reaches its wait. Zero or less means no limit.
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
      // This observer completes every commit, whatever stages there are.
      observe(TurnOrder.afterCommit)
    }
  }

  /// Adds a stage to all later commits.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(n), where n is the number of stages.
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

  /// Requests a commit at the end of this turn.
  ///
  /// Calling it again before the commit has no further effect. A sleeping loop is woken, but not before the frame
  /// interval has elapsed. During a stage, this requests the next commit; see ``Stage/init(name:order:perform:)``.
  /// It has no effect if the loop's thread has ended. Can be called from any thread.
  ///
  /// - Complexity: O(1), without allocating memory.
  public func setNeedsCommit() {
    lock.lock()
    let wakes = apply(state.mark { loop.clockNow })
    lock.unlock()
    if wakes { comeToWait() }
  }

  /// Commits immediately if a change is marked, even if the frame interval has not elapsed.
  ///
  /// During a stage, it has no effect. Between the stages of a commit, it performs the remaining ones.
  ///
  /// - Precondition: The calling thread is the loop's.
  public func flush() {
    // A thread that is ending may flush after its loop has ended, when there is nothing left to commit.
    guard loop.isOfCallingThread else {
      fatalError(
        "flush() of a commit pipeline of \(loop.threadDescription) was called by \(RunLoop.callingThreadDescription)")
    }
    advance(to: .max, .flush)
  }

  /// Calls a closure after the commit that covers all changes marked so far, or after the next if there are none.
  ///
  /// The closure is called exactly once, on the loop's thread, after the last stage. Closures are called in the
  /// order in which they were added. If the loop's thread ends or the pipeline is invalidated first, the closure is
  /// called on that thread with the cause ``CommitReport/Cause/loopEnded`` or ``CommitReport/Cause/invalidated``.
  /// If that has already happened, it is called immediately on the calling thread. Can be called from any thread.
  ///
  /// - Parameter body: A closure that receives a report of the commit. It may run the loop and mark the pipeline.
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

  /// Removes the pipeline from its loop.
  ///
  /// The pipeline makes no more commits. Marked changes are not committed; to commit them, call ``flush()`` first.
  /// Stages that have not been performed are released. Closures that are waiting for a commit are called with the
  /// cause ``CommitReport/Cause/invalidated`` before this method returns. Calling it again has no effect.
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

  /// Whether the loop started the commit in progress, as opposed to ``flush()``.
  ///
  /// Must be read on the loop's thread.
  package var isCalledOut: Bool { progress?.isCallOut ?? false }
}

extension CommitPipeline {
  /// Makes sure that the loop reaches its wait, where it commits, before it sleeps.
  ///
  /// A loop that is waiting, or that has already reached its wait in this pass, needs another pass. The loop of
  /// this very thread may be waiting, if it waits inside another loop that performs call-outs.
  private func comeToWait() {
    if loop === RunLoop.currentIfMade, arrival.runDepth == loop.runDepth, arrival.waits != loop.waits, !loop.isWaiting {
      return
    }
    loop.wakeUp()
  }
}

// These methods require the lock.
extension CommitPipeline {
  /// Performs an action of the state, and returns whether the loop must be woken.
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

  /// Creates a group of stages and the observer that performs it.
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
    // As on Apple's systems, the mode of an application's launch contains only the observer that commits.
    if order == TurnOrder.commit { loop.add(observer, forMode: .initialization) }
  }
}

// These methods are called on the loop's thread.
extension CommitPipeline {
  /// Begins a commit if one is due, and performs its stages up to `order`.
  private func advance(to order: Int, _ cause: CommitReport.Cause) {
    guard !isPerforming else { return }
    if progress == nil { begin(cause) }
    guard var commit = progress, commit.runDepth == loop.runDepth else { return }
    while commit.next < commit.groups.count, commit.groups[commit.next].order <= order {
      let group = commit.groups[commit.next]
      commit.next += 1
      progress = commit
      perform(group, isCallOut: commit.isCallOut)
      // A stage may have invalidated the pipeline.
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

  /// Calls the closures whose commit is finished.
  ///
  /// Each closure is removed before it is called: it may run the loop, which calls the others, or end the thread.
  private func callBack(isCallOut: Bool) {
    while let (body, report) = lock.withLock({ callbacks.takeFirst() }) {
      if isCallOut { noteCall(of: body) }
      body.call(report)
    }
  }

  private func endReport(_ cause: CommitReport.Cause) -> CommitReport {
    CommitReport(number: 0, marks: 0, cause: cause, began: loop.clockNow.instant, duration: .zero)
  }

  /// Ends the pipeline and calls the waiting closures.
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

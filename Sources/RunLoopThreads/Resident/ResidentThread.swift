// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// A thread that stays and takes work until it is stopped.
///
/// This object is the owner's handle. When the last reference to it is released, the thread stops after the work that
/// it has accepted; the release does not wait for that. The thread is also an executor: an actor that returns it as its
/// `unownedExecutor` lives on the thread.
public final class ResidentThread: Sendable, IdentityHashable {
  let core: ResidentCore
  /// How the jobs of tasks that prefer this executor are run.
  ///
  /// It does not hold the handle: a task holds the executor that it prefers.
  private let taskRunner = LoopJobRunner()

  /// Starts a thread and returns when its loop takes work.
  ///
  /// - Parameters:
  ///   - name: The thread's name.
  ///   - configuration: Stack, niceness, processors and timer slack.
  ///   - drainLimits: How much jobs that leave others behind may delay the end after ``stop(_:)``.
  ///   - onStart: Called on the thread before it takes work, to open what belongs to the thread.
  ///   - onStop: Called on the thread when it takes no more work and has run or given up the work that it had, to close
  ///     what belongs to the thread.
  /// - Throws: ``ThreadError/cannotStart(thread:number:)``.
  public init(
    name: String? = nil, configuration: Thread.Configuration = .init(), drainLimits: DrainLimits = .init(),
    onStart: (@Sendable () -> Void)? = nil, onStop: (@Sendable () -> Void)? = nil
  ) throws(ThreadError) {
    core = try ResidentCore.start(
      name: name, configuration: configuration, drainLimits: drainLimits, onStart: onStart, onStop: onStop)
    setUpTaskRunner()
  }

  /// Starts a thread with a loop that was made for it.
  ///
  /// The other parameters are those of the public initializer.
  package init(
    loop: RunLoop, name: String?, onStart: (@Sendable () -> Void)?, onStop: (@Sendable () -> Void)?
  ) throws(ThreadError) {
    core = try ResidentCore.start(
      name: name, configuration: .init(), drainLimits: .init(), loop: loop, onStart: onStart, onStop: onStop)
    setUpTaskRunner()
  }

  /// Sets how the jobs of tasks that prefer this executor are run and counted.
  private func setUpTaskRunner() {
    let identity = UnownedTaskExecutor(ordinary: self)
    taskRunner.runs { [jobCount = core.jobCount] job in
      jobCount.add()
      job.runSynchronously(on: identity)
    }
  }

  deinit {
    // In a forked child there is no thread to stop, and the parent's goes on.
    guard !core.thread.generation.isPast else { return }
    _ = core.stop(.afterPendingWork)
  }
}

// The thread's properties, for any thread.
extension ResidentThread {
  /// The thread's loop.
  ///
  /// After the thread has ended, it rejects everything.
  public var runLoop: RunLoop { core.runLoop }

  /// The thread's object.
  public var thread: Thread { core.thread }

  /// What the thread does with work.
  public var state: State { core.state }

  /// What has happened so far to the work that was handed to the thread.
  public var counts: StopReport { core.counts }
}

// Handing it work, from any thread.
extension ResidentThread {
  /// Runs a block on the thread.
  ///
  /// Performs keep their order among each other, but not relative to blocks of the loop and the jobs of actors, as in
  /// ``Thread/perform(inModes:_:)``. Can be called from any thread.
  ///
  /// - Throws: ``ThreadError/stopping(thread:)``, ``ThreadError/finished(thread:)``, or ``ThreadError/noModes``; the
  ///   block is released and does not run.
  @discardableResult
  @inline(never)
  public func perform(
    inModes modes: [RunLoop.Mode] = [.common], _ work: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let task = PerformTask(owner: core, from: Origin(site: crl_call_site()), work)
    try core.post(task, inModes: modes)
    return PerformToken(task: task, timer: nil)
  }

  /// Runs a block on the thread and waits until it has run; on the thread itself, runs it at once.
  ///
  /// - Returns: The block's result.
  /// - Throws: The block's error, or a ``ThreadError``: those of ``perform(inModes:_:)``, ``ThreadError/cancelled`` if
  ///   the thread is stopped immediately, ``ThreadError/dropped(thread:)`` if it leaves in the middle,
  ///   ``ThreadError/timedOut``, ``ThreadError/wouldDeadlock(cycle:)``.
  @inline(never)
  public func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil,
    _ work: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    try performAndWait(inModes: modes, timeout: timeout, from: Origin(site: crl_call_site()).waits, work)
  }

  // Separate, because a specialised function is called by its general form, and not from where that was called.
  @_specialize(where Value == Void, Failure == Never)
  @inline(never)
  private func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode], timeout: Duration?, from origin: Origin,
    _ work: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    let me = Thread.current
    guard core.thread !== me else { return try work() }
    return try me.answer(of: work, on: core.thread, core, from: origin, inModes: modes, timeout: timeout)
  }

  /// Runs a block on the thread after a time.
  ///
  /// Work that is not due when the thread is stopped is cancelled.
  ///
  /// - Throws: The errors of ``perform(inModes:_:)``.
  @discardableResult
  @inline(never)
  public func perform(
    afterDelay delay: Duration, inModes modes: [RunLoop.Mode] = [.default], _ work: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let task = PerformTask(owner: core, from: Origin(site: crl_call_site()), work)
    return PerformToken(task: task, timer: try core.post(task, afterDelay: delay, inModes: modes))
  }

  /// Runs a block on the thread and returns what the block returns.
  ///
  /// If the calling task is cancelled before the block has begun, it does not run.
  ///
  /// - Throws: The block's error, `CancellationError`, or a ``ThreadError`` of
  ///   ``performAndWait(inModes:timeout:_:)``.
  public func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    // Written before the work is over, read afterwards.
    nonisolated(unsafe) var answer: Result<Value, any Error>?
    let task = PerformTask(owner: core, from: Origin(site: crl_call_site())) { answer = Result(catching: work) }
    let state: PerformTask.State = try await withTaskCancellationHandler {
      try Task.checkCancellation()
      return try await withCheckedThrowingContinuation { continuation in
        do throws(ThreadError) {
          try core.post(task, inModes: [.common])
          task.whenOver { continuation.resume(returning: $0) }
        } catch {
          // It may have been cancelled before it was posted.
          continuation.resume(with: error == .cancelled ? .success(.cancelled) : .failure(error))
        }
      }
    } onCancel: {
      task.end(.cancelled)
    }
    switch state {
    case .cancelled:
      try Task.checkCancellation()
      throw ThreadError.cancelled
    case .dropped: throw ThreadError.dropped(thread: core.thread.label)
    case .pending, .running, .ran:
      guard let answer else { throw ThreadError.cancelled }
      return try answer.get()
    }
  }
}

// Ending it, from any thread, including the thread itself.
extension ResidentThread {
  /// Stops the thread, and returns at once.
  ///
  /// The thread takes no more work from now on, and every run of its loop returns, including nested ones. Calling it
  /// again has no effect, except that an immediate stop overrules one that is not. The effect depends on the state of
  /// the thread:
  ///
  /// | | running | draining | stopping | finished |
  /// | --- | --- | --- | --- | --- |
  /// | `stop(.afterPendingWork)` | draining | draining | stopping | finished |
  /// | `stop(.immediately)` | stopping | stopping | stopping | finished |
  /// | the last reference goes | draining | draining | stopping | finished |
  /// | work that runs | runs to its end | runs to its end | runs to its end | – |
  /// | work that waits, in any mode | runs in its mode | runs, in order | cancelled | – |
  /// | delayed work that was due | runs | runs, behind the other | cancelled | – |
  /// | delayed work that was not due | waits | cancelled | cancelled | – |
  /// | new work | accepted | rejected | rejected | rejected |
  /// | a wait for new work on the thread itself | runs at once | runs at once | runs at once | – |
  /// | a wait for work that is cancelled | throws | throws | throws | throws |
  /// | a job of an actor or a task | runs | runs, before `onStop` | runs, before `onStop` | runs later, elsewhere |
  /// | the jobs that it leaves | run | run, within the limits | one more runs | run later, elsewhere |
  /// | a block of the loop's own, posted before the stop | runs in its mode | runs, in order | is dropped | – |
  /// | a block of the loop's own, posted later | – | is dropped | is dropped | is rejected |
  /// | `Thread.exit()` in work | finished; the rest is cancelled | the same | the same | – |
  /// | `join()`, `finished()` | wait | wait | wait | return the report |
  ///
  /// The limits are the ``DrainLimits`` that the thread was made with, by default 1000 rounds of jobs and a second. A
  /// task that makes a few steps on the thread is finished there; a task that goes on indefinitely does not keep the
  /// thread. The remaining jobs, and those that arrive when the thread has closed, are late but not lost: they run one
  /// after the other when the thread has ended, on a Dispatch queue. The report counts them.
  ///
  /// - Returns: The state after the call.
  @discardableResult
  public func stop(_ policy: StopPolicy = .afterPendingWork) -> State { core.stop(policy) }

  /// Waits until the thread has ended.
  ///
  /// It does not stop the thread.
  ///
  /// - Returns: What the thread has done with its work.
  /// - Throws: ``ThreadError/joinsItself(thread:)``, ``ThreadError/timedOut``, ``ThreadError/wouldDeadlock(cycle:)``.
  @discardableResult
  public func join(timeout: Duration? = nil) throws(ThreadError) -> StopReport {
    if let timeout { try core.thread.join(timeout: timeout) } else { try core.thread.join() }
    return core.counts
  }

  /// Waits, without holding a thread, until this thread has ended.
  ///
  /// As with ``join(timeout:)``, its loop has then ended, with the `cancel` call-outs of its sources, and what it held
  /// is released.
  ///
  /// - Returns: What the thread has done with its work.
  public func finished() async -> StopReport {
    await withCheckedContinuation { continuation in core.whenFinished { continuation.resume(returning: $0) } }
  }
}

// Threads that the whole process shares.
extension ResidentThread {
  private typealias SharedThreads = ThreadLocked<[String: ResidentThread]>
  private static let sharedThreads = PerProcess { SharedThreads([:]) }

  /// Makes what a forked child gives up, before a child can exist.
  static func prepareForForks() {
    _ = sharedThreads
    OrphanedSleeps.prepareForForks()
    ClockedSleeps.prepareForForks()
  }

  /// In a forked child: gives up the parent's threads, which do not exist in the child.
  static func forgetParentsThreads() {
    sharedThreads.forget()
    OrphanedSleeps.forgetParents()
    ClockedSleeps.forgetParents()
  }

  /// The thread of a name that the whole process shares; every caller gets the same thread.
  ///
  /// The first caller starts it, and it stays until ``removeShared(_:)``. A thread that was stopped is replaced by a
  /// new one. No caller waits for another: if several callers find no thread at the same moment, each starts one, and
  /// all but one of these threads are stopped at once. Can be called from any thread, and from code that is called when
  /// a thread is started.
  ///
  /// - Precondition: The system can make a thread.
  public static func shared(_ name: String = "default") -> ResidentThread {
    let threads = sharedThreads.value
    if let known = threads.withLock({ $0[name] }), known.state == .running { return known }
    let made: ResidentThread
    do {
      made = try ResidentThread(name: name)
    } catch {
      fatalError("the shared resident thread \"\(name)\": \(error)")
    }
    // The thread that is replaced is released outside the lock.
    let (thread, replaced) = threads.withLock { threads -> (ResidentThread, ResidentThread?) in
      let earlier = threads[name]
      if let earlier, earlier.state == .running { return (earlier, nil) }
      threads[name] = made
      return (made, earlier)
    }
    withExtendedLifetime(replaced) {}
    if thread !== made { made.stop(.immediately) }
    return thread
  }

  /// Removes the shared thread of a name.
  ///
  /// It stops when nobody holds it any more.
  ///
  /// - Returns: The thread, if there was one.
  @discardableResult
  public static func removeShared(_ name: String = "default") -> ResidentThread? {
    sharedThreads.value.withLock { $0.removeValue(forKey: name) }
  }
}

extension ResidentThread: SerialExecutor, TaskExecutor {
  /// Queues a job of an actor for the thread.
  public func enqueue(_ job: UnownedJob) { core.enqueue(job) }

  // The runtime queues the jobs of tasks with the second of these functions: without a witness of its own for that,
  // they would arrive as jobs of actors.

  /// Queues a job of a task that prefers this executor for the thread.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueTaskJob(_ job: UnownedJob) {
    core.noteAwake(job)
    core.leave(LoopJob(job, taskRunner))
  }

  /// Queues a job of a task that prefers this executor for the thread.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueTaskJob(_ job: consuming ExecutorJob) { enqueueTaskJob(UnownedJob(job)) }

  /// The identity of the executor of actors, which lives as long as the thread.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { core.asUnownedSerialExecutor() }

  /// The identity of the executor of tasks: this handle.
  ///
  /// A task that prefers it holds it, and releases what this returns when the task has ended: it has to be the same
  /// object.
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

  /// Whether the caller is on the thread.
  public func isIsolatingCurrentContext() -> Bool? { core.isIsolatingCurrentContext() }

  /// Stops the process unless the caller is on the thread.
  public func checkIsolated() { core.checkIsolated() }
}

extension ResidentThread: CustomDebugStringConvertible {
  /// The thread's name and state.
  public var debugDescription: String { "<ResidentThread>{\(core.thread.label), \(state)}" }
}

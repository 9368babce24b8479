// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

/// A thread that accepts work until it is stopped.
///
/// This object is the owner's handle. When the last reference to it is released, the thread runs the work that it has
/// accepted and then stops; the release does not wait. The thread is also an executor: an actor that returns it as its
/// `unownedExecutor` is isolated to the thread.
public final class ResidentThread: Sendable, IdentityHashable {
  let core: ResidentCore
  /// Runs the jobs of tasks that prefer this executor.
  ///
  /// It does not retain the handle, because a task already retains its preferred executor.
  private let taskRunner = LoopJobRunner()

  /// Starts a thread and returns when its loop accepts work.
  ///
  /// - Parameters:
  ///   - name: The thread's name. The default is `nil`.
  ///   - configuration: The stack size, niceness, processors and timer slack.
  ///   - drainLimits: How long jobs that enqueue other jobs may delay the end after ``stop(_:)``.
  ///   - onStart: Called on the thread before it accepts work, for example to open resources.
  ///   - onStop: Called on the thread after all of its work has run or been cancelled, for example to close resources.
  /// - Throws: ``ThreadError/cannotStart(thread:number:)``.
  public init(
    name: String? = nil, configuration: Thread.Configuration = .init(), drainLimits: DrainLimits = .init(),
    onStart: (@Sendable () -> Void)? = nil, onStop: (@Sendable () -> Void)? = nil
  ) throws(ThreadError) {
    core = try ResidentCore.start(
      name: name, configuration: configuration, drainLimits: drainLimits, onStart: onStart, onStop: onStop)
    setUpTaskRunner()
  }

  /// Starts a thread with an existing loop.
  ///
  /// The other parameters are those of the public initializer.
  package init(
    loop: RunLoop, name: String?, onStart: (@Sendable () -> Void)?, onStop: (@Sendable () -> Void)?
  ) throws(ThreadError) {
    core = try ResidentCore.start(
      name: name, configuration: .init(), drainLimits: .init(), loop: loop, onStart: onStart, onStop: onStop)
    setUpTaskRunner()
  }

  /// Configures how the jobs of tasks that prefer this executor are run and counted.
  private func setUpTaskRunner() {
    let identity = UnownedTaskExecutor(ordinary: self)
    taskRunner.runs { [jobCount = core.jobCount] job in
      jobCount.add()
      job.runSynchronously(on: identity)
    }
  }

  deinit {
    // A forked child has no thread to stop, and the parent's thread keeps running.
    guard !core.thread.generation.isPast else { return }
    _ = core.stop(.afterPendingWork)
  }
}

// The thread's properties.
extension ResidentThread {
  /// The thread's run loop.
  ///
  /// After the thread has ended, the loop rejects everything.
  public var runLoop: RunLoop { core.runLoop }

  /// The thread's object.
  public var thread: Thread { core.thread }

  /// The current state of the thread.
  public var state: State { core.state }

  /// The current counts of the work that was posted to the thread.
  public var counts: StopReport { core.counts }
}

// Posting work, from any thread.
extension ResidentThread {
  /// Runs a block on the thread.
  ///
  /// Performs run in the order in which they were posted.
  ///
  /// They are not ordered relative to blocks of the loop and the jobs of actors; see ``Thread/perform(inModes:_:)``.
  /// Can be called from any thread.
  ///
  /// - Throws: ``ThreadError/stopping(thread:)``, ``ThreadError/finished(thread:)``, or ``ThreadError/noModes``. The
  ///   block is then released without running.
  @discardableResult
  @inline(never)
  public func perform(
    inModes modes: [RunLoop.Mode] = [.common], _ work: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let task = PerformTask(owner: core, from: Origin(site: crl_call_site()), work)
    try core.post(task, inModes: modes)
    return PerformToken(task: task, timer: nil)
  }

  /// Runs a block on the thread and waits until it has run; on the thread itself, runs the block immediately.
  ///
  /// - Returns: The block's result.
  /// - Throws: The block's error, or a ``ThreadError``: those of ``perform(inModes:_:)``, ``ThreadError/cancelled`` if
  ///   the thread is stopped immediately, ``ThreadError/dropped(thread:)`` if it exits while running the block,
  ///   ``ThreadError/timedOut``, ``ThreadError/wouldDeadlock(cycle:)``.
  @inline(never)
  public func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil,
    _ work: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    try performAndWait(inModes: modes, timeout: timeout, from: Origin(site: crl_call_site()).waits, work)
  }

  // A separate function, because a specialised one is called through its generic form, which hides the original call
  // site.
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

  /// Runs a block on the thread after a delay.
  ///
  /// If the thread is stopped before the delay has elapsed, the work is cancelled.
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

  /// Runs a block on the thread and returns its result.
  ///
  /// If the calling task is cancelled before the block has begun, the block does not run.
  ///
  /// - Throws: The block's error, `CancellationError`, or a ``ThreadError`` of
  ///   ``performAndWait(inModes:timeout:_:)``.
  public func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    // Written before the work is over, and read only afterwards.
    nonisolated(unsafe) var answer: Result<Value, any Error>?
    let task = PerformTask(owner: core, from: Origin(site: crl_call_site())) { answer = Result(catching: work) }
    let state: PerformTask.State = try await withTaskCancellationHandler {
      try Task.checkCancellation()
      return try await withCheckedThrowingContinuation { continuation in
        do throws(ThreadError) {
          try core.post(task, inModes: [.common])
          task.whenOver { continuation.resume(returning: $0) }
        } catch {
          // The task may have been cancelled before the work was posted.
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

// Stopping, from any thread including the thread itself.
extension ResidentThread {
  /// Stops the thread and returns immediately.
  ///
  /// The thread stops accepting work, and every run of its loop returns, including nested runs. Calling this again has
  /// no effect, except that an immediate stop overrides a draining one. The effect depends on the state of the thread:
  ///
  /// | | running | draining | stopping | finished |
  /// | --- | --- | --- | --- | --- |
  /// | `stop(.afterPendingWork)` | draining | draining | stopping | finished |
  /// | `stop(.immediately)` | stopping | stopping | stopping | finished |
  /// | the last reference is released | draining | draining | stopping | finished |
  /// | work that is running | runs to completion | runs to completion | runs to completion | – |
  /// | pending work, in any mode | runs in its mode | runs, in order | cancelled | – |
  /// | delayed work that was due | runs | runs, after other work | cancelled | – |
  /// | delayed work that was not due | waits | cancelled | cancelled | – |
  /// | new work | accepted | rejected | rejected | rejected |
  /// | `performAndWait` on the thread itself | runs immediately | runs immediately | runs immediately | – |
  /// | a wait for work that is cancelled | throws | throws | throws | throws |
  /// | a job of an actor or a task | runs | runs, before `onStop` | runs, before `onStop` | runs later, elsewhere |
  /// | the jobs that it enqueues | run | run, within the limits | one more runs | run later, elsewhere |
  /// | a block of the loop, posted before the stop | runs in its mode | runs, in order | is dropped | – |
  /// | a block of the loop, posted later | – | is dropped | is dropped | is rejected |
  /// | `Thread.exit()` in work | finished; the rest is cancelled | the same | the same | – |
  /// | `join()`, `finished()` | wait | wait | wait | return the report |
  ///
  /// The limits are the ``DrainLimits`` passed to the initializer, by default 1000 rounds of jobs and one second.
  ///
  /// A task with only a few steps left completes on the thread; a task that never ends does not keep the thread alive.
  /// Remaining jobs and jobs that arrive after the thread has closed are not lost: they run serially on a Dispatch
  /// queue after the thread has ended, and the report counts them.
  ///
  /// - Returns: The state after the call.
  @discardableResult
  public func stop(_ policy: StopPolicy = .afterPendingWork) -> State { core.stop(policy) }

  /// Waits until the thread has ended.
  ///
  /// It does not stop the thread.
  ///
  /// - Returns: The final counts of the thread's work.
  /// - Throws: ``ThreadError/joinsItself(thread:)``, ``ThreadError/timedOut``, ``ThreadError/wouldDeadlock(cycle:)``.
  @discardableResult
  public func join(timeout: Duration? = nil) throws(ThreadError) -> StopReport {
    if let timeout { try core.thread.join(timeout: timeout) } else { try core.thread.join() }
    return core.counts
  }

  /// Suspends the calling task until the thread has ended.
  ///
  /// As with ``join(timeout:)``, the loop has then ended, the `cancel` call-outs of its sources have been made, and
  /// the objects that the thread held have been released.
  ///
  /// - Returns: The final counts of the thread's work.
  public func finished() async -> StopReport {
    await withCheckedContinuation { continuation in core.whenFinished { continuation.resume(returning: $0) } }
  }
}

// Threads shared by the whole process.
extension ResidentThread {
  private typealias SharedThreads = ThreadLocked<[String: ResidentThread]>
  private static let sharedThreads = PerProcess { SharedThreads([:]) }

  /// Creates the state that a forked child resets; called before a fork can happen.
  static func prepareForForks() {
    _ = sharedThreads
    OrphanedSleeps.prepareForForks()
    ClockedSleeps.prepareForForks()
  }

  /// Forgets the parent's threads, which do not exist in a forked child.
  static func forgetParentsThreads() {
    sharedThreads.forget()
    OrphanedSleeps.forgetParents()
    ClockedSleeps.forgetParents()
  }

  /// Returns the thread that the whole process shares under a name.
  ///
  /// The first call starts the thread, which runs until ``removeShared(_:)``. A stopped thread is replaced by a new
  /// one. No caller waits for another: if several callers find no thread at the same time, each starts one, and all
  /// but one of these threads are stopped immediately. Can be called from any thread, including from callbacks at a
  /// thread's start.
  ///
  /// - Precondition: The system can create a thread.
  public static func shared(_ name: String = "default") -> ResidentThread {
    let threads = sharedThreads.value
    if let known = threads.withLock({ $0[name] }), known.state == .running { return known }
    let made: ResidentThread
    do {
      made = try ResidentThread(name: name)
    } catch {
      fatalError("the shared resident thread \"\(name)\": \(error)")
    }
    // The replaced thread is released after unlocking.
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

  /// Removes the shared thread with a name.
  ///
  /// The thread stops when the last reference to it is released.
  ///
  /// - Returns: The removed thread, or nil if there was none.
  @discardableResult
  public static func removeShared(_ name: String = "default") -> ResidentThread? {
    sharedThreads.value.withLock { $0.removeValue(forKey: name) }
  }
}

extension ResidentThread: SerialExecutor, TaskExecutor {
  /// Enqueues an actor's job on the thread.
  public func enqueue(_ job: UnownedJob) { core.enqueue(job) }

  // The runtime enqueues the jobs of tasks through the `TaskExecutor` requirement. Without a separate witness for it,
  // they would be enqueued as jobs of actors.

  /// Enqueues a job of a task that prefers this executor.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueTaskJob(_ job: UnownedJob) {
    core.noteAwake(job)
    core.leave(LoopJob(job, taskRunner))
  }

  /// Enqueues a job of a task that prefers this executor.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueTaskJob(_ job: consuming ExecutorJob) { enqueueTaskJob(UnownedJob(job)) }

  /// An unowned reference to the serial executor, valid as long as the thread exists.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { core.asUnownedSerialExecutor() }

  /// An unowned reference to this handle as a task executor.
  ///
  /// A task retains its preferred executor and releases the object behind this reference when the task ends, so both
  /// must be the same object.
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

  /// Returns whether the caller runs on the thread.
  public func isIsolatingCurrentContext() -> Bool? { core.isIsolatingCurrentContext() }

  /// Traps unless the caller runs on the thread.
  public func checkIsolated() { core.checkIsolated() }
}

extension ResidentThread: CustomDebugStringConvertible {
  /// The thread's name and state.
  public var debugDescription: String { "<ResidentThread>{\(core.thread.label), \(state)}" }
}

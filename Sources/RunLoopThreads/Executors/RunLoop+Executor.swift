// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import RunLoopCore

extension RunLoop {
  /// A serial executor that runs jobs on the loop's thread.
  ///
  /// An actor that returns it as its `unownedExecutor` is isolated to that thread, even if this package did not create
  /// it.
  ///
  /// ```swift
  /// actor Device {
  ///   nonisolated let executor: RunLoop.Executor
  ///   nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  ///
  ///   init(on loop: RunLoop) { executor = loop.executor }
  /// }
  /// ```
  ///
  /// Jobs run in the common modes of the loop, in the order in which they were enqueued, and wait while the loop is
  /// not running.
  ///
  /// Jobs that are pending when the thread ends run before it exits. Jobs enqueued later run serially on a Dispatch
  /// queue. For a thread created by this package, use ``ResidentThread``, which is also an executor and manages the
  /// thread's lifetime.
  ///
  /// Can be used from any thread. Returns the same executor each time until the loop ends.
  public var executor: Executor {
    let place = attachment(ExecutorPlace.self) { ExecutorPlace(Executor(self)) }?.attachment
    return place?.executor ?? Executor(ended: self)
  }

  /// An executor that runs the jobs of actors on a run loop.
  public final class Executor: SerialExecutor, Sendable {
    private struct Late {
      var canRun = false
      /// Jobs enqueued while the thread runs the loop's last jobs.
      var waiting: [LoopJob] = []
    }

    private let loop: RunLoop
    private let runner = LoopJobRunner()
    private let late = ThreadLocked(Late())
    /// Runs jobs that are enqueued after the loop has ended.
    private let lateQueue = DispatchQueue(label: "late jobs of a run loop")
    private static let isLate = DispatchSpecificKey<ObjectIdentifier>()

    fileprivate init(_ loop: RunLoop) {
      self.loop = loop
      lateQueue.setSpecific(key: Executor.isLate, value: ObjectIdentifier(self))
      runner.runs { [unowned self] job in
        // A resident thread passes on the jobs that it did not run.
        guard isIsolatingCurrentContext() == true else { return runLate(LoopJob(job, runner)) }
        job.runSynchronously(on: asUnownedSerialExecutor())
      }
    }

    /// Creates an executor for a loop that has ended.
    fileprivate convenience init(ended loop: RunLoop) {
      self.init(loop)
      loopDidEnd()
    }

    /// Called when the thread has run all pending jobs.
    fileprivate func loopDidEnd() {
      let waiting = late.withLock { late in
        late.canRun = true
        return exchange(&late.waiting, with: [])
      }
      for job in waiting { runLate(job) }
    }

    private func runLate(_ job: LoopJob) { lateQueue.async { [self] in runner.run(job) } }

    /// Enqueues an actor's job on the loop.
    public func enqueue(_ job: UnownedJob) {
      let job = LoopJob(job, runner)
      guard !loop.enqueue(job) else { return }
      let runsNow = late.withLock { late in
        if !late.canRun { late.waiting.append(job) }
        return late.canRun
      }
      if runsNow { runLate(job) }
    }

    /// Enqueues an actor's job on the loop.
    public func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

    /// An unowned reference to this executor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Returns whether the caller runs on the loop's thread or in a late job.
    public func isIsolatingCurrentContext() -> Bool? {
      loop.isOfCallingThread || DispatchQueue.getSpecific(key: Executor.isLate) == ObjectIdentifier(self)
    }

    /// Traps unless the caller runs on the loop's thread or in a late job.
    public func checkIsolated() {
      guard isIsolatingCurrentContext() != true else { return }
      fatalError("expected to be on \(loop.threadDescription), and is on \(Thread.current.label)")
    }
  }
}

/// Attaches an executor to its loop, until the loop ends.
private final class ExecutorPlace: LoopAttachment {
  let executor: RunLoop.Executor

  init(_ executor: RunLoop.Executor) {
    self.executor = executor
  }

  func loopDidEnd() { executor.loopDidEnd() }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import RunLoopCore

extension RunLoop {
  /// The loop as a serial executor: an actor that returns it as its `unownedExecutor` lives on the loop's thread,
  /// whoever has made that thread.
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
  /// Jobs run in the common modes of the loop, in the order in which they were left. They wait as long as the loop is
  /// not run. What waits when the thread ends runs at its end; what comes later runs on a Dispatch queue, one after the
  /// other. For a thread of this package's own, ``ResidentThread`` is the executor that also starts and ends it.
  ///
  /// Can be used from any thread. The executor is the same each time, until the loop's end.
  public var executor: Executor {
    let place = attachment(ExecutorPlace.self) { ExecutorPlace(Executor(self)) }?.attachment
    return place?.executor ?? Executor(ended: self)
  }

  /// A loop as the executor of actors.
  public final class Executor: SerialExecutor, Sendable {
    private struct Late {
      var canRun = false
      /// What came while the thread ran the last jobs of the loop.
      var waiting: [LoopJob] = []
    }

    private let loop: RunLoop
    private let runner = LoopJobRunner()
    private let late = ThreadLocked(Late())
    /// Runs what comes after the loop's end.
    private let lateQueue = DispatchQueue(label: "late jobs of a run loop")
    private static let isLate = DispatchSpecificKey<ObjectIdentifier>()

    fileprivate init(_ loop: RunLoop) {
      self.loop = loop
      lateQueue.setSpecific(key: Executor.isLate, value: ObjectIdentifier(self))
      runner.runs { [unowned self] job in
        // A resident thread hands on what it has not run.
        guard isIsolatingCurrentContext() == true else { return runLate(LoopJob(job, runner)) }
        job.runSynchronously(on: asUnownedSerialExecutor())
      }
    }

    /// Makes the executor of a loop that has ended.
    fileprivate convenience init(ended loop: RunLoop) {
      self.init(loop)
      loopDidEnd()
    }

    /// The thread has run what waited.
    fileprivate func loopDidEnd() {
      let waiting = late.withLock { late in
        late.canRun = true
        return exchange(&late.waiting, with: [])
      }
      for job in waiting { runLate(job) }
    }

    private func runLate(_ job: LoopJob) { lateQueue.async { [self] in runner.run(job) } }

    /// Queues a job of an actor for the loop.
    public func enqueue(_ job: UnownedJob) {
      let job = LoopJob(job, runner)
      guard !loop.enqueue(job) else { return }
      let runsNow = late.withLock { late in
        if !late.canRun { late.waiting.append(job) }
        return late.canRun
      }
      if runsNow { runLate(job) }
    }

    /// Queues a job of an actor for the loop.
    public func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

    /// The identity of the executor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Whether the caller is on the loop's thread, or is a late job.
    public func isIsolatingCurrentContext() -> Bool? {
      loop.isOfCallingThread || DispatchQueue.getSpecific(key: Executor.isLate) == ObjectIdentifier(self)
    }

    /// Stops the process unless the caller is on the loop's thread, or is a late job.
    public func checkIsolated() {
      guard isIsolatingCurrentContext() != true else { return }
      fatalError("expected to be on \(loop.threadDescription), and is on \(Thread.current.label)")
    }
  }
}

/// The place of a loop's executor, which it leaves with the loop's end.
private final class ExecutorPlace: LoopAttachment {
  let executor: RunLoop.Executor

  init(_ executor: RunLoop.Executor) {
    self.executor = executor
  }

  func loopDidEnd() { executor.loopDidEnd() }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import RunLoopCore
import Synchronization

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
  /// Can be used from any thread. The executor is the same each time, and stays as long as somebody holds it.
  public var executor: Executor {
    attachment(ExecutorPlace.self) { ExecutorPlace(Executor(self)) }?.attachment.executor ?? Executor(self)
  }

  /// A loop as the executor of actors.
  public final class Executor: SerialExecutor, Sendable {
    private let loop: RunLoop
    private let runner = LoopJobRunner()
    /// Runs what comes after the loop's end.
    private let lateQueue = DispatchQueue(label: "late jobs of a run loop")
    private static let isLate = DispatchSpecificKey<ObjectIdentifier>()

    fileprivate init(_ loop: RunLoop) {
      self.loop = loop
      lateQueue.setSpecific(key: Executor.isLate, value: ObjectIdentifier(self))
      runner.runs { [unowned self] job in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    /// Queues a job of an actor for the loop.
    public func enqueue(_ job: UnownedJob) {
      let job = LoopJob(job, runner)
      guard !loop.enqueue(job) else { return }
      lateQueue.async { [self] in runner.run(job) }
    }

    /// Queues a job of an actor for the loop.
    public func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

    /// The identity of the executor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Whether the caller is on the loop's thread, or is a late job.
    public func isIsolatingCurrentContext() -> Bool? {
      loop.isOfCallingThread || DispatchQueue.getSpecific(key: Executor.isLate) == ObjectIdentifier(self)
    }

    /// Stops the process unless the caller is on the loop's thread.
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

  func loopDidEnd() {}
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

// The serial executor.
extension ResidentCore: SerialExecutor {
  func enqueue(_ job: UnownedJob) {
    noteAwake(job)
    leave(job)
  }

  /// Notes that a task has been resumed; only loops on virtual time need this.
  @inline(__always)
  func noteAwake(_ job: UnownedJob) { if !runLoop.hasSystemTime { sleepers.noteAwake(job) } }

  func leave(_ job: UnownedJob) { leave(LoopJob(job, serialRunner)) }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  func isIsolatingCurrentContext() -> Bool? { isOnThread }

  func checkIsolated() {
    guard !isOnThread else { return }
    fatalError("expected to be on \(thread.label), and is on \(Thread.current.label)")
  }

  /// Whether the calling thread is this executor's.
  ///
  /// The thread still counts while it is ending, although its loop and object have already ended, so objects that it
  /// releases then and destructors of thread-specific data still run isolated. The kernel thread ID stays the thread's
  /// own until other threads are notified of its end. After that, only late jobs are isolated.
  private var isOnThread: Bool {
    // The common case, which makes no system call.
    if runLoop.isCurrent { return true }
    guard !thread.generation.isPast else { return false }
    let caller = RunLoop.callingThreadID
    return thread.ending.hasCome ? lateThread.load(ordering: .relaxed) == caller : thread.kernelID == caller
  }

  /// Enqueues a job on the thread.
  ///
  /// Jobs enqueued after the thread has finished its work still run on it, before `onStop`. Jobs that arrive later run
  /// serially on a Dispatch queue once the thread has ended.
  ///
  /// - Complexity: O(1).
  func leave(_ job: LoopJob) {
    guard !runLoop.enqueue(job) else { return }
    lock.lock()
    lateJobs.append(job)
    if lifecycle.state == .finished { report.lateJobCount += 1 }
    let queue = queueToStart()
    lock.unlock()
    queue?.async { [self] in runLateJobs() }
  }

  /// Starts running late jobs, because the thread has ended.
  func beginLateJobs() {
    lock.lock()
    canRunLateJobs = true
    let queue = queueToStart()
    lock.unlock()
    queue?.async { [self] in runLateJobs() }
  }

  /// Returns the queue on which to start running late jobs, or nil if there are none or they are already running.
  ///
  /// Requires the lock.
  private func queueToStart() -> DispatchQueue? {
    guard canRunLateJobs, !lateJobs.isEmpty, !runsLateJobs else { return nil }
    runsLateJobs = true
    if let lateQueue { return lateQueue }
    let queue = DispatchQueue(label: "late jobs of a resident thread")
    lateQueue = queue
    return queue
  }

  private func runLateJobs() {
    lateThread.store(RunLoop.callingThreadID, ordering: .relaxed)
    while let jobs = takeJobsToRunLate() {
      for job in jobs { job.runner.run(job) }
    }
  }

  func takeLateJobs() -> [LoopJob] {
    lock.withLock {
      defer { lateJobs = [] }
      return lateJobs
    }
  }

  private func takeJobsToRunLate() -> [LoopJob]? {
    lock.lock()
    defer { lock.unlock() }
    guard lateJobs.isEmpty else {
      defer { lateJobs = [] }
      return lateJobs
    }
    runsLateJobs = false
    lateThread.store(0, ordering: .relaxed)
    return nil
  }
}

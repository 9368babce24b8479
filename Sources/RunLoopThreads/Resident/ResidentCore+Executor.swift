// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

// The executor.
extension ResidentCore: SerialExecutor {
  func enqueue(_ job: UnownedJob) {
    noteAwake(job)
    leave(job)
  }

  /// Notes that a task goes on, on a loop whose time a test keeps.
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
  /// The thread stays the executor's while it ends, although its loop and its object have ended before: what it
  /// releases then, and the destructors of its data, still run isolated. The kernel's number is the thread's own until
  /// other threads are notified of the end; after that, only late jobs are isolated.
  private var isOnThread: Bool {
    // This is the usual case, and makes no system call.
    if runLoop.isCurrent { return true }
    guard !thread.generation.isPast else { return false }
    let caller = RunLoop.callingThreadID
    return thread.ending.hasCome ? lateThread.load(ordering: .relaxed) == caller : thread.kernelID == caller
  }

  /// Queues a job for the thread.
  ///
  /// Jobs that are queued when the thread has done its work still run on it, before its `onStop`. A job that arrives
  /// later is not lost: the late jobs run one after the other when the thread has ended, on a Dispatch queue. Dispatch
  /// has threads for all of them, or makes one as soon as the system can.
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

  /// Runs late jobs from now on, because the thread has ended.
  func beginLateJobs() {
    lock.lock()
    canRunLateJobs = true
    let queue = queueToStart()
    lock.unlock()
    queue?.async { [self] in runLateJobs() }
  }

  /// The queue that is to begin with late jobs, if there are any and none is running.
  ///
  /// Called under the lock.
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

// SPDX-License-Identifier: Apache-2.0

import Glibc

// Executors on a thread with a queue, a lock and a condition, as executor packages implement them, to compare the
// cost of an executor that is not a run loop.

/// A thread that runs everything in its queue, all available items at once.
private final class Worker: @unchecked Sendable {
  // Sendable: the variables are guarded by the mutex.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var queue: [UnownedJob] = []
  private var isWaiting = false
  private let run: @Sendable (UnownedJob) -> Void

  init(_ run: @escaping @Sendable (UnownedJob) -> Void) {
    self.run = run
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
    var thread = pthread_t()
    let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { worker in
      guard let worker else { return nil }
      Unmanaged<Worker>.fromOpaque(worker).takeRetainedValue().live()
    }
    let status = pthread_create(&thread, nil, body, Unmanaged.passRetained(self).toOpaque())
    precondition(status == 0)
  }

  func enqueue(_ job: UnownedJob) {
    pthread_mutex_lock(mutex)
    queue.append(job)
    let wakes = isWaiting
    isWaiting = false
    pthread_mutex_unlock(mutex)
    if wakes { pthread_cond_signal(condition) }
  }

  private func live() -> Never {
    var jobs: [UnownedJob] = []
    while true {
      pthread_mutex_lock(mutex)
      while queue.isEmpty {
        isWaiting = true
        pthread_cond_wait(condition, mutex)
      }
      isWaiting = false
      swap(&jobs, &queue)
      pthread_mutex_unlock(mutex)
      for job in jobs { run(job) }
      jobs.removeAll(keepingCapacity: true)
    }
  }
}

/// An executor for actors, which is never deallocated.
final class PThreadSerialExecutor: SerialExecutor {
  // Written once, before there is a job.
  nonisolated(unsafe) private var worker: Worker?

  init() {
    let identity = asUnownedSerialExecutor()
    worker = Worker { $0.runSynchronously(on: identity) }
    _ = Unmanaged.passRetained(self)
  }

  func enqueue(_ job: UnownedJob) { worker?.enqueue(job) }
  func enqueue(_ job: consuming ExecutorJob) { worker?.enqueue(UnownedJob(job)) }
  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// An executor for tasks that prefer it, which is never deallocated.
final class PThreadTaskExecutor: TaskExecutor {
  nonisolated(unsafe) private var worker: Worker?

  init() {
    let identity = asUnownedTaskExecutor()
    worker = Worker { $0.runSynchronously(on: identity) }
    _ = Unmanaged.passRetained(self)
  }

  func enqueue(_ job: UnownedJob) { worker?.enqueue(job) }
  func enqueue(_ job: consuming ExecutorJob) { worker?.enqueue(UnownedJob(job)) }
}

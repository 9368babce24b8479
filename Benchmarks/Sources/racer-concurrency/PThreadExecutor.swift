// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An executor on a thread with a queue, a lock and a condition, as executor packages implement it, to compare the cost
/// of an executor that is not a run loop.
///
/// The thread runs everything in its queue, all available items at once. It never ends.
final class PThreadExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // Sendable: the variables are guarded by the mutex.
  enum Jobs {
    /// Jobs of actors.
    case actors
    /// Jobs of tasks that prefer the executor.
    case tasks
  }

  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let jobs: Jobs
  private var queue: [UnownedJob] = []
  private var isWaiting = false

  init(for jobs: Jobs) {
    self.jobs = jobs
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
    var thread = pthread_t()
    let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { executor in
      guard let executor else { return nil }
      Unmanaged<PThreadExecutor>.fromOpaque(executor).takeRetainedValue().live()
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

  func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  private func live() -> Never {
    let (actors, tasks) = (asUnownedSerialExecutor(), asUnownedTaskExecutor())
    var batch: [UnownedJob] = []
    while true {
      pthread_mutex_lock(mutex)
      while queue.isEmpty {
        isWaiting = true
        pthread_cond_wait(condition, mutex)
      }
      isWaiting = false
      swap(&batch, &queue)
      pthread_mutex_unlock(mutex)
      for job in batch {
        switch jobs {
        case .actors: job.runSynchronously(on: actors)
        case .tasks: job.runSynchronously(on: tasks)
        }
      }
      batch.removeAll(keepingCapacity: true)
    }
  }
}

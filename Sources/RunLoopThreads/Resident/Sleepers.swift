// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The tasks that sleep by `Task.sleep` on a loop whose time a test keeps, and the timers that are to end their sleeps.
///
/// The runtime does not tell an executor that a sleep was cancelled: it resumes the task, and leaves the job that would
/// have ended the sleep. But a task that sleeps is queued again for one of two reasons only, the end of its sleep and
/// its cancellation. So the timer of a task that is queued before it has fired is due at once, and the time does not
/// move to its date.
final class Sleepers: Sendable {
  private let timers = ThreadLocked<[UInt: Timer]>([:])

  /// Notes that the calling task sleeps; returns its address, or zero if it cannot be known.
  func add(_ timer: Timer) -> UInt {
    let task = withUnsafeCurrentTask { $0.map { unsafeBitCast($0, to: UInt.self) } ?? 0 }
    guard task != 0 else { return 0 }
    // A sleep that the same task, or another at its address, has left was cancelled.
    timers.withLock { $0.updateValue(timer, forKey: task) }?.move(after: .zero)
    return task
  }

  /// Notes that the sleep of a task has ended by its timer.
  func remove(_ task: UInt, _ timer: Timer?) {
    let removed = timers.withLock { timers in
      timers[task] === timer ? timers.removeValue(forKey: task) : nil
    }
    withExtendedLifetime(removed) {}
  }

  /// Notes that a task is queued again.
  func noteAwake(_ job: UnownedJob) {
    // A task is its own job.
    let task = unsafeBitCast(job, to: UInt.self)
    let timer = timers.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: task) }
    timer?.move(after: .zero)
  }
}

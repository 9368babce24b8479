// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The tasks that sleep by `Task.sleep` on a loop whose time a test keeps, and the timers that are to end their sleeps.
///
/// The runtime does not tell an executor that a sleep was cancelled: it resumes the task, and leaves the job that would
/// have ended the sleep. But a task that sleeps is queued again for one of two reasons only, the end of its sleep and
/// its cancellation. So the timer of a task that is queued before it has fired is due at once, and the time does not
/// move to its date.
final class Sleepers: Sendable {
  /// The loop holds the timers; if it ends, it lets go of them, and the sleeps go on elsewhere.
  private struct Entry {
    weak var timer: Timer?
  }

  private let entries = ThreadLocked<[UInt: Entry]>([:])

  /// Notes that the calling task sleeps; returns its address, or zero if it cannot be known.
  func add(_ timer: Timer) -> UInt {
    let task = withUnsafeCurrentTask { $0.map { unsafeBitCast($0, to: UInt.self) } ?? 0 }
    guard task != 0 else { return 0 }
    // A sleep that the same task, or another at its address, has left was cancelled.
    entries.withLock { $0.updateValue(Entry(timer: timer), forKey: task) }?.timer?.move(after: .zero)
    return task
  }

  /// Notes that the sleep of a task has ended by its timer, or that its loop has let go of the timer.
  func remove(_ task: UInt, _ timer: Timer?) {
    let other = entries.withLock { entries -> Timer? in
      guard let entry = entries[task] else { return nil }
      let held = entry.timer
      if held === timer { entries[task] = nil }
      return held
    }
    // Released under no lock.
    withExtendedLifetime(other) {}
  }

  /// Notes that a task is queued again.
  func noteAwake(_ job: UnownedJob) {
    // A task is its own job.
    let task = unsafeBitCast(job, to: UInt.self)
    let entry = entries.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: task) }
    entry?.timer?.move(after: .zero)
  }
}

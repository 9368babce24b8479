// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The tasks that sleep with `Task.sleep` on a loop with virtual time, and the timers that end their sleeps.
///
/// The runtime does not notify an executor when a sleep is cancelled: it resumes the task and leaves the job that
/// would have ended the sleep. However, a sleeping task is enqueued only when its sleep ends or is cancelled. If a
/// task is enqueued before its timer has fired, the sleep was cancelled; its timer is made due immediately, so that
/// virtual time does not advance to the original date.
final class Sleepers: Sendable {
  /// A weak reference to a timer, which its loop owns; if the loop ends, the sleep continues elsewhere.
  private struct Entry {
    weak var timer: Timer?
  }

  private let entries = ThreadLocked<[UInt: Entry]>([:])

  /// Notes that the calling task sleeps; returns the task's address, or zero if there is no current task.
  func add(_ timer: Timer) -> UInt {
    let task = withUnsafeCurrentTask { $0.map { unsafeBitCast($0, to: UInt.self) } ?? 0 }
    guard task != 0 else { return 0 }
    // An earlier entry belongs to a sleep that was cancelled, of the same task or of an earlier one at its address.
    entries.withLock { $0.updateValue(Entry(timer: timer), forKey: task) }?.timer?.move(after: .zero)
    return task
  }

  /// Notes that the sleep of a task was ended by its timer, or that the loop has released the timer.
  func remove(_ task: UInt, _ timer: Timer?) {
    let other = entries.withLock { entries -> Timer? in
      guard let entry = entries[task] else { return nil }
      let held = entry.timer
      if held === timer { entries[task] = nil }
      return held
    }
    // Released after unlocking.
    withExtendedLifetime(other) {}
  }

  /// Notes that a task was enqueued.
  func noteAwake(_ job: UnownedJob) {
    // The job of a task is the task object itself.
    let task = unsafeBitCast(job, to: UInt.self)
    let entry = entries.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: task) }
    entry?.timer?.move(after: .zero)
  }
}

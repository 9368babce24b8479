// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A timer of an item, which has one in every loop that the item is in: when the thread of a loop ends, the time goes
/// on in the others, and when there are none, in the next.
///
/// Guarded by the item's lock. The block takes that lock, and asks whether its time is still wanted.
package struct RegisteredTimer {
  private struct Entry {
    weak var loop: RunLoop?
    let timer: Timer
  }

  private let deadline: SuspendingClock.Instant
  private let interval: Duration?
  private let block: @Sendable (Timer) -> Void
  private var entries: [Entry] = []

  /// Makes a timer that is in no loop; without an interval it fires once.
  package init(
    deadline: SuspendingClock.Instant, interval: Duration? = nil, _ block: @escaping @Sendable (Timer) -> Void
  ) {
    self.deadline = deadline
    self.interval = interval
    self.block = block
  }

  /// The timers that there are.
  package var timers: [Timer] { entries.map(\.timer) }

  package func contains(_ timer: Timer) -> Bool { entries.contains { $0.timer === timer } }

  /// Enters a mode of a loop.
  package mutating func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    entries.removeAll { $0.loop == nil }
    guard !loop.takesNoItems else { return }
    let present = entries.first { $0.loop === loop }?.timer
    let timer = present ?? Timer(deadline: deadline, interval: interval, block: block)
    if present == nil { entries.append(Entry(loop: loop, timer: timer)) }
    // The socket or port that the timer belongs to is rejected with an error.
    _ = loop.offer(timer, forMode: mode)
  }

  /// Leaves a mode of a loop, perhaps the last.
  package mutating func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isLast: Bool) {
    guard let index = entries.firstIndex(where: { $0.loop === loop }) else { return }
    loop.remove(entries[index].timer, forMode: mode)
    if isLast { entries.remove(at: index) }
  }

  /// Ends the timers.
  ///
  /// Outside the lock.
  package func invalidate() { for timer in timers { timer.invalidate() } }
}

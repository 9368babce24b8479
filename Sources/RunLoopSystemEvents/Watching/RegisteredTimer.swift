// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore

/// A timer of an item, which has a separate timer in each loop that the item is in.
///
/// When the thread of a loop ends, the timers of the other loops continue. If there are none, the next loop that the
/// item is added to gets one. Guarded by the item's lock. The block acquires that lock, and checks whether the timer
/// is still current.
package struct RegisteredTimer {
  private struct Entry {
    weak var loop: RunLoop?
    let timer: Timer
  }

  private let deadline: SuspendingClock.Instant
  private let interval: Duration?
  private let block: @Sendable (Timer) -> Void
  private var entries: [Entry] = []

  /// Creates a timer that is in no loop, and fires once if it has no interval.
  package init(
    deadline: SuspendingClock.Instant, interval: Duration? = nil, _ block: @escaping @Sendable (Timer) -> Void
  ) {
    self.deadline = deadline
    self.interval = interval
    self.block = block
  }

  package var timers: [Timer] { entries.map(\.timer) }

  package func contains(_ timer: Timer) -> Bool { entries.contains { $0.timer === timer } }

  package mutating func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    entries.removeAll { $0.loop == nil }
    guard !loop.takesNoItems else { return }
    let present = entries.first { $0.loop === loop }?.timer
    let timer = present ?? Timer(deadline: deadline, interval: interval, block: block)
    if present == nil { entries.append(Entry(loop: loop, timer: timer)) }
    // If the loop has ended, adding the socket or port itself fails with an error.
    _ = loop.offer(timer, forMode: mode)
  }

  /// Leaves a mode of a loop; `isLast` means that the item is in no other mode of it.
  package mutating func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isLast: Bool) {
    guard let index = entries.firstIndex(where: { $0.loop === loop }) else { return }
    loop.remove(entries[index].timer, forMode: mode)
    if isLast { entries.remove(at: index) }
  }

  /// Invalidates the timers; must be called without the lock.
  package func invalidate() { for timer in timers { timer.invalidate() } }
}

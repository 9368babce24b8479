// SPDX-License-Identifier: Apache-2.0

import Synchronization

// What can be asked, from any thread.
extension RunLoop {
  /// Whether the loop is waiting for something to happen.
  ///
  /// Can be used from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopIsWaiting`.
  public var isWaiting: Bool { waiting.load(ordering: .relaxed) }

  /// The mode of the innermost run, nil outside every run.
  ///
  /// Can be used from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopCopyCurrentMode`.
  public var currentMode: Mode? { ModeState.at(current.load(ordering: .acquiring))?.name }

  /// The modes that exist: a mode that has been made is never removed.
  ///
  /// Can be used from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopCopyAllModes`.
  public var modes: Set<Mode> { table.withLock { Set($0.modes.keys) } }

  /// The common modes, in the order in which they were made common; can be used from any thread.
  package var commonModes: [Mode] { table.withLock { $0.commonNames } }

  /// The date at which the first timer of a mode is due, even one that is being called; nil without one.
  ///
  /// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopGetNextTimerFireDate`.
  ///
  /// - Complexity: O(1), and O(n) in the timers that are being called.
  public func nextDeadline(forMode mode: Mode) -> SuspendingClock.Instant? {
    let tick = table.withLock { table -> Tick? in
      guard let mode = table.modes[mode], mode.timerCount > 0 else { return nil }
      return mode.timers.firstDeadline
    }
    return tick?.instant
  }

  /// The time by the loop's clock, which the deadlines of its timers refer to.
  ///
  /// Can be used from any thread.
  public var now: SuspendingClock.Instant { waiter.now.instant }

  /// Whether the loop's thread has ended, so that nothing can run any more.
  ///
  /// If it is true, the loop rejects all items and blocks. Can be used from any thread.
  public var hasEnded: Bool { takesNoItems && inbox.rejectsAll }

  /// Whether the loop's thread has begun to end the loop: items are rejected, and blocks soon will be; can be used from
  /// any thread.
  package var takesNoItems: Bool { table.withLock { $0.isDead } }

  /// The time by the loop's clock, for layers above that count a time-out on it; can be used from any thread.
  package var clockNow: Tick { waiter.now }

  /// The instant of the loop's clock after a duration from now, or the last or first instant that exists.
  ///
  /// Can be called from any thread. The library's own sum of an instant and a duration ends the process if it does not
  /// fit.
  package func instant(after duration: Duration) -> SuspendingClock.Instant {
    (waiter.now + Int64(saturating: duration)).instant
  }
}

extension RunLoop {
  /// What a loop has counted since it was made.
  public struct Statistics: Sendable, Hashable {
    /// The wake-ups that tolerances of timers have saved.
    public let savedWakeUpCount: Int
    /// The blocks, and the work that was handed over, that were dropped because the loop's thread ended first.
    public let droppedBlockCount: Int
    /// The notifications that were still queued when their queue or the loop's thread ended, and were not posted.
    public let droppedNotificationCount: Int
    /// The items and blocks that the loop has rejected.
    public let rejectionCount: Int
    /// How many waits have begun with a look for coming events, as ``RunLoop/waiting`` allows, instead of a sleep.
    public let lookCount: Int
  }

  /// What the loop has counted so far.
  ///
  /// Can be used from any thread.
  public var statistics: Statistics {
    Statistics(
      savedWakeUpCount: counters.savedWakeUps.load(ordering: .relaxed),
      droppedBlockCount: counters.droppedBlocks.load(ordering: .relaxed),
      droppedNotificationCount: counters.droppedNotifications.load(ordering: .relaxed),
      rejectionCount: counters.rejections.load(ordering: .relaxed), lookCount: counters.looks.load(ordering: .relaxed))
  }
}

/// The counters, which any thread may increment.
///
/// Relaxed: they are numbers for those who ask, and nothing is done by them.
struct Counters: ~Copyable {
  let savedWakeUps = Atomic<Int>(0)
  let droppedBlocks = Atomic<Int>(0)
  let droppedNotifications = Atomic<Int>(0)
  let rejections = Atomic<Int>(0)
  let looks = Atomic<Int>(0)
}

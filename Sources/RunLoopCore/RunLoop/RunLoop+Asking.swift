// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Queries that any thread can make.
extension RunLoop {
  /// Whether the loop is waiting for events.
  ///
  /// Can be used from any thread. The corresponding Core Foundation function is `CFRunLoopIsWaiting`.
  public var isWaiting: Bool { waiting.load(ordering: .relaxed) }

  /// The mode of the innermost run, or `nil` if the loop is not running.
  ///
  /// Can be used from any thread. The corresponding Core Foundation function is `CFRunLoopCopyCurrentMode`.
  public var currentMode: Mode? { ModeState.at(current.load(ordering: .acquiring))?.name }

  /// The existing modes, which are never removed once created.
  ///
  /// Can be used from any thread. The corresponding Core Foundation function is `CFRunLoopCopyAllModes`.
  public var modes: Set<Mode> { table.withLock { Set($0.modes.keys) } }

  /// The common modes, in the order in which they were made common (thread-safe).
  package var commonModes: [Mode] { table.withLock { $0.commonNames } }

  /// Returns the earliest due time of a mode's timers, including those being called, or `nil` if the mode has none.
  ///
  /// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopGetNextTimerFireDate`.
  ///
  /// - Complexity: O(1), plus O(n) in the number of timers being called.
  public func nextDeadline(forMode mode: Mode) -> SuspendingClock.Instant? {
    let tick = table.withLock { table -> Tick? in
      guard let mode = table.modes[mode], mode.timerCount > 0 else { return nil }
      return mode.timers.firstDeadline
    }
    return tick?.instant
  }

  /// The current time of the loop's clock, on which its timers' deadlines are based.
  ///
  /// Can be used from any thread.
  public var now: SuspendingClock.Instant { waiter.now.instant }

  /// Whether the loop's thread has ended.
  ///
  /// Initially `false`. Once it is `true`, the loop rejects all items and blocks. Can be used from any thread.
  public var hasEnded: Bool { takesNoItems && inbox.rejectsAll }

  /// Whether the loop's thread has begun to end the loop.
  ///
  /// If so, the loop rejects items and will soon reject blocks. Can be used from any thread.
  package var takesNoItems: Bool { table.withLock { $0.isDead } }

  /// The current time of the loop's clock, for higher layers that measure time-outs (thread-safe).
  package var clockNow: Tick { waiter.now }

  /// The instant of the loop's clock after a duration from now, clamped to the representable range.
  ///
  /// Can be called from any thread. The standard library's addition of an instant and a duration traps on overflow.
  package func instant(after duration: Duration) -> SuspendingClock.Instant {
    (waiter.now + Int64(saturating: duration)).instant
  }
}

extension RunLoop {
  /// Counts that a loop has kept since it was created.
  public struct Statistics: Sendable, Hashable {
    /// The number of wake-ups saved by timer tolerances.
    public let savedWakeUpCount: Int
    /// The number of blocks and hand-offs that were dropped because the loop's thread ended first.
    public let droppedBlockCount: Int
    /// The number of notifications that were never posted because their queue or the loop's thread ended first.
    public let droppedNotificationCount: Int
    /// The number of items and blocks that the loop has rejected.
    public let rejectionCount: Int
    /// The number of waits that began by polling for events, as ``RunLoop/waiting`` allows, instead of sleeping.
    public let lookCount: Int
  }

  /// The loop's counts so far.
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

/// Counters that any thread may increment.
///
/// They use relaxed ordering because they are purely informational.
struct Counters: ~Copyable {
  let savedWakeUps = Atomic<Int>(0)
  let droppedBlocks = Atomic<Int>(0)
  let droppedNotifications = Atomic<Int>(0)
  let rejections = Atomic<Int>(0)
  let looks = Atomic<Int>(0)
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Dates that are a duration away, by the clock of the timer's loop.

extension Timer {
  /// Makes a timer that fires after a duration, and adds it to a loop in the default mode.
  ///
  /// Can be called from any thread; a sleeping loop takes the timer into account at once. The timer counts by the
  /// loop's clock. Add it to further modes with ``RunLoop/add(_:forMode:)-(Timer,_)``. If the loop's thread has ended,
  /// the timer is invalid: ``isValid`` is false and the block is released.
  ///
  /// - Parameters:
  ///   - delay: How long after now it fires first. Zero or less: as soon as the loop runs. A duration that is longer
  ///     than the clock can count is as long as that.
  ///   - interval: The time between two dates. None, or one that is not positive: the timer fires once. Less than a
  ///     microsecond counts as one.
  ///   - tolerance: How much later than its date it may fire, so that several timers can share one wake-up. Negative
  ///     counts as zero; of a repeating timer at most half its interval is used.
  ///   - loop: The loop that calls the block; by default the calling thread's.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out
  ///     runs.
  ///
  /// - Complexity: O(log n) in the timers of the mode.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopTimerCreateWithHandler` and `CFRunLoopAddTimer`.
  @discardableResult
  @inline(never)
  public convenience init(
    after delay: Duration, repeating interval: Duration? = nil, tolerance: Duration = .zero,
    on loop: RunLoop = .current, block: @escaping @Sendable (Timer) -> Void
  ) {
    let origin = Origin(site: crl_call_site())
    self.init(
      tick: .never, interval: Timer.usableInterval(interval), tolerance: Int64(saturating: tolerance), block: block)
    // The date comes when the timer is the loop's: it is a date of the loop's clock.
    if loop.add(self, forMode: .default, from: origin) {
      move(to: .after(Int64(saturating: delay)), from: origin.site)
    } else {
      invalidate()
    }
  }

  /// Sets the timer back: it fires next when a duration has passed from now.
  ///
  /// Now is by the clock of the loop that the timer is in, or was last. A duration of zero or less makes the timer due
  /// at once, and one that is longer than the clock can count is as long as that. Otherwise it is as if ``deadline``
  /// were set: it takes effect on a sleeping loop at once, moves the phase of a repeating timer, and sets the date of a
  /// parked timer again. An invalid timer ignores it, and so does one that fires once in its own call-out, after which
  /// it ends. Can be called from any thread.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerSetNextFireDate`.
  @inline(never)
  public func move(after delay: Duration) {
    let site = crl_call_site()
    move(to: .after(Int64(saturating: delay)), from: site)
  }

  /// Takes the date away: the timer does not fire until it is moved.
  ///
  /// The timer stays valid and in its modes, and keeps the loop alive in them. Give it a date again with
  /// ``move(after:)`` or ``deadline``, which reads as the last instant of the clock meanwhile. A repeating timer that
  /// parks itself in its own call-out stays parked. An invalid timer ignores it. Can be called from any thread.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation call is `CFRunLoopTimerSetNextFireDate` with a date in the distant future.
  public func park() { move(to: .tick(.never)) }
}

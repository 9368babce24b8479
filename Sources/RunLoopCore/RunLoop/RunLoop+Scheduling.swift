// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

extension RunLoop {
  /// Makes a timer that fires after a duration, and adds it to a mode of this loop.
  ///
  /// Can be called from any thread; a sleeping loop takes the timer into account at once. The timer counts by the
  /// loop's clock. Add it to further modes with ``add(_:forMode:)-(Timer,_)``. If the loop's thread has ended, the
  /// timer is invalid: its ``Timer/isValid`` is false and the block is released.
  ///
  /// - Parameters:
  ///   - delay: How long after now it fires first. Zero or less: as soon as the loop runs. A duration that is longer
  ///     than the clock can count is as long as that.
  ///   - interval: The time between two dates. None, or one that is not positive: the timer fires once. Less than a
  ///     microsecond counts as one.
  ///   - tolerance: How much later than its date it may fire, so that several timers can share one wake-up. Negative
  ///     counts as zero; of a repeating timer at most half its interval is used.
  ///   - mode: The mode, or ``Mode/common``.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out
  ///     runs.
  ///
  /// - Complexity: O(log n) in the timers of the mode.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopTimerCreateWithHandler` and `CFRunLoopAddTimer`.
  @discardableResult
  @inline(never)
  public func schedule(
    in delay: Duration, repeating interval: Duration? = nil, tolerance: Duration = .zero, mode: Mode = .default,
    block: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let origin = Origin(site: crl_call_site())
    let timer = Timer(
      tick: tickNow + Int64(saturating: delay), by: self, interval: Timer.usableInterval(interval),
      tolerance: Int64(saturating: tolerance), block: block)
    if !add(timer, forMode: mode, from: origin) { timer.invalidate() }
    return timer
  }
}

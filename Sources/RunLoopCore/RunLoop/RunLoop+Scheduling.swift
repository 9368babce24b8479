// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

extension RunLoop {
  /// Creates a timer that fires after a duration, and adds it to a mode of this loop.
  ///
  /// Can be called from any thread; a sleeping loop takes the timer into account immediately. The timer uses the
  /// loop's clock. Use ``add(_:forMode:)-(Timer,_)`` to add it to further modes. If the loop's thread has ended, the
  /// returned timer is invalid: its ``Timer/isValid`` is `false`, and the block has been released.
  ///
  /// - Parameters:
  ///   - delay: The time until the timer first fires. If zero or negative, it fires as soon as the loop runs. A delay
  ///     beyond the range of the clock is clamped.
  ///   - interval: The time between two fire dates. If `nil`, zero or negative, the timer fires once. Values below a
  ///     microsecond are rounded up to one. Defaults to `nil`.
  ///   - tolerance: How long after its date the timer may fire, so that several timers can share one wake-up. A
  ///     negative value counts as zero, and a repeating timer uses at most half its interval. Defaults to zero.
  ///   - mode: The mode, or ``Mode/common``. Defaults to the default mode.
  ///   - block: Called on the loop's thread with the timer, and released once the timer is invalid and no call-out is
  ///     running.
  ///
  /// - Complexity: O(log n) in the number of timers in the mode.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopTimerCreateWithHandler` and `CFRunLoopAddTimer`.
  @discardableResult
  @inline(never)
  public func schedule(
    in delay: Duration, repeating interval: Duration? = nil, tolerance: Duration = .zero, mode: Mode = .default,
    block: consuming @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let origin = Origin(site: crl_call_site())
    let now = tickNow
    let timer = Timer(
      tick: now + Int64(saturating: delay), now: now, interval: Timer.usableInterval(interval),
      tolerance: Int64(saturating: tolerance), block: block)
    if !add(timer, forMode: mode, from: origin) { timer.invalidate() }
    return timer
  }
}

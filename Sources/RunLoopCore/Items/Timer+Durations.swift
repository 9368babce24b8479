// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Dates that are a duration away, by the clock of the timer's loop.

extension Timer {
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

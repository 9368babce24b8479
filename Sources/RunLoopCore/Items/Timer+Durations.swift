// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

// Dates that are relative to now, by the clock of the timer's loop.

extension Timer {
  /// Moves the timer to a date that is a duration after now.
  ///
  /// The duration counts by the clock of the loop that the timer is in, or was in last. With zero or less the timer is
  /// due at once; a duration that is too long for the clock is limited to the longest one. Otherwise this is like
  /// setting ``deadline``: it takes effect on a sleeping loop at once, moves the phase of a repeating timer, and ends
  /// the effect of ``park()``. It has no effect on an invalid timer, nor on a one-shot timer in its own call-out,
  /// because that timer ends after the call-out. Can be called from any thread.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerSetNextFireDate`.
  @inline(never)
  public func move(after delay: Duration) {
    let site = crl_call_site()
    move(to: .after(Int64(saturating: delay)), from: site)
  }

  /// Keeps the timer from firing until it is moved.
  ///
  /// The timer stays valid and in its modes, and keeps the loop alive in them. Use ``move(after:)`` or ``deadline`` to
  /// give it a date again; until then ``deadline`` reads as the last instant of the clock. A repeating timer that parks
  /// itself in its own call-out stays parked. It has no effect on an invalid timer. Can be called from any thread.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation call is `CFRunLoopTimerSetNextFireDate` with a date in the distant future.
  public func park() { move(to: .tick(.never)) }
}

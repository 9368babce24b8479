// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The time by the loop's clock, for the layers above that count a time-out on it.
  ///
  /// Any thread.
  package var clockNow: Tick { waiter.now }

  /// The instant of the loop's clock that a duration from now is, or the last or first that there is.
  ///
  /// Any thread. The library's own sum of an instant and a duration ends the process if it does not fit.
  package func instant(after duration: Duration) -> SuspendingClock.Instant {
    (waiter.now + Int64(saturating: duration)).instant
  }
}

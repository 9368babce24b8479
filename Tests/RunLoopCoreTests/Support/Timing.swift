// SPDX-License-Identifier: Apache-2.0

import TestSupport

@testable import RunLoopCore

extension SteppedTime {
  /// The instant a number of milliseconds of virtual time after the clock's start.
  func instant(_ milliseconds: Int) -> SuspendingClock.Instant { Tick(milliseconds: milliseconds).instant }

  /// Logs an entry followed by the current milliseconds, as in `T20`.
  func stamp(_ log: Log, _ entry: String) { log.write("\(entry)\(milliseconds)") }
}

extension Tick {
  init(milliseconds: Int) { self.init(nanoseconds: Int64(milliseconds) * 1_000_000) }

  var milliseconds: Int { Int(nanoseconds / 1_000_000) }
}

extension SuspendingClock.Instant {
  /// The milliseconds since the start of its loop's clock.
  var milliseconds: Int { Tick(self).milliseconds }
}

extension Timer {
  /// Creates a timer that is not in any mode yet, with its date in milliseconds of virtual time.
  convenience init(
    at milliseconds: Int, every interval: Duration? = nil, tolerance: Duration = .zero,
    _ block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      deadline: Tick(milliseconds: milliseconds).instant, interval: interval, tolerance: tolerance, block: block)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// Conversions between the wall clock and the loop's clock. Wall dates are seconds since 2001-01-01, as in Foundation.

extension Waiter {
  /// The difference between the wall clock and the monotonic clock, in nanoseconds.
  ///
  /// The wall clock is read between two readings of the monotonic clock, and again if the thread was preempted in
  /// between. The remaining error makes a timer late, never early. As long as the measurements agree with an earlier
  /// one, that one is used, so that equal dates are equal ticks, and a change of the clock by some microseconds counts
  /// as none.
  var wallOffset: Int64 {
    var (offset, shortest) = (Int64.max, Int64.max)
    for _ in 0..<4 where shortest > 10_000 {
      let before = now.nanoseconds
      let wall = crl_wall_nanoseconds() - Tick.nanosecondsTo2001
      let after = now.nanoseconds
      if after - before < shortest { (offset, shortest) = (wall - after, after - before) }
    }
    return WallOffset.settled(offset, uncertainty: shortest)
  }
}

private enum WallOffset {
  /// The difference between the clocks that was used last.
  ///
  /// Relaxed: nothing else depends on it.
  private static let last = Atomic<Int64>(0)
  /// The maximum change of the wall clock in nanoseconds that is ignored.
  private static let ignoredChange: Int64 = 20_000

  /// Returns the last offset, or the measured one if the wall clock was set in between.
  ///
  /// - Parameter uncertainty: How much greater than the measured offset the true one can be.
  static func settled(_ measured: Int64, uncertainty: Int64) -> Int64 {
    let last = last.load(ordering: .relaxed)
    if measured - last <= ignoredChange, last - measured <= uncertainty + ignoredChange { return last }
    self.last.store(measured, ordering: .relaxed)
    return measured
  }
}

extension Tick {
  /// The nanoseconds from 1970 to 2001.
  fileprivate static let nanosecondsTo2001: Int64 = 978_307_200_000_000_000

  /// Represents a date that is never reached: Foundation's `Date.distantFuture`.
  private static let distantFutureDate: Double = 63_113_904_000
  /// Represents a date that has always been reached: Foundation's `Date.distantPast`.
  private static let distantPastDate: Double = -63_114_076_800

  /// The tick at which the wall clock shows `date`, provided that it is not set before.
  ///
  /// A date about 290 years ahead or more is ``never``, and so is a value that is not a number; a date as far back is
  /// ``distantPast``.
  init(wallDate date: Double, offset: Int64) {
    // Seconds and their fraction are converted separately, because their sum in nanoseconds would lose precision.
    let seconds = date.rounded(.down)
    guard seconds < 9.2e9 else {
      self = .never
      return
    }
    guard seconds > -9.2e9 else {
      self = .distantPast
      return
    }
    let fraction = ((date - seconds) * 1e9).rounded()
    let (tick, overflow) = (Int64(seconds) * 1_000_000_000 + Int64(fraction)).subtractingReportingOverflow(offset)
    self = overflow ? (date > 0 ? .never : .distantPast) : Tick(nanoseconds: tick)
  }

  /// The time that the wall clock will show, or showed, at this tick.
  func wallDate(offset: Int64) -> Double {
    let (wall, overflow) = nanoseconds.addingReportingOverflow(offset)
    guard self != .never, !(overflow && offset > 0) else { return Tick.distantFutureDate }
    guard self != .distantPast, !overflow else { return Tick.distantPastDate }
    let (seconds, fraction) = wall.quotientAndRemainder(dividingBy: 1_000_000_000)
    return Double(seconds) + Double(fraction) / 1e9
  }
}

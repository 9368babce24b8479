// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

// The wall clock beside the loop's: dates are seconds since 2001-01-01, as Foundation counts them.

extension Waiter {
  /// The system's two clocks side by side.
  ///
  /// The wall clock is read between two looks at the other, again if the thread has lost the processor meanwhile. What
  /// is left of the difference makes a timer late, never early.
  var wallOffset: Int64 {
    var (offset, shortest) = (Int64.max, Int64.max)
    for _ in 0..<4 where shortest > 10_000 {
      let before = now.nanoseconds
      let wall = crl_wall_nanoseconds() - Tick.nanosecondsTo2001
      let after = now.nanoseconds
      if after - before < shortest { (offset, shortest) = (wall - after, after - before) }
    }
    return offset
  }
}

extension Tick {
  /// The nanoseconds from 1970 to 2001.
  fileprivate static let nanosecondsTo2001: Int64 = 978_307_200_000_000_000

  /// What stands for a date that does not come: Foundation's `Date.distantFuture`.
  private static let distantFutureDate: Double = 63_113_904_000
  /// What stands for a date that has always been: Foundation's `Date.distantPast`.
  private static let distantPastDate: Double = -63_114_076_800

  /// The tick at which the wall clock says `date`, if nobody sets it meanwhile.
  ///
  /// Some 290 years ahead and all that lies behind is ``never``, and so is what is not a number; as far back it is
  /// ``distantPast``.
  init(wallDate date: Double, offset: Int64) {
    // Seconds and their fraction apart: together they would be too coarse.
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

  /// What the wall clock will say, or said, at this tick.
  func wallDate(offset: Int64) -> Double {
    let (wall, overflow) = nanoseconds.addingReportingOverflow(offset)
    guard self != .never, !(overflow && offset > 0) else { return Tick.distantFutureDate }
    guard self != .distantPast, !overflow else { return Tick.distantPastDate }
    let (seconds, fraction) = wall.quotientAndRemainder(dividingBy: 1_000_000_000)
    return Double(seconds) + Double(fraction) / 1e9
  }
}

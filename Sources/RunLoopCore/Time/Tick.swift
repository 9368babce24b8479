// SPDX-License-Identifier: Apache-2.0

/// A point of the loop's clock, in nanoseconds.
///
/// The system's clock is `CLOCK_MONOTONIC`, which neither jumps with the wall clock nor advances during a suspend. Sums
/// saturate: a date beyond the range of the clock is ``never``.
///
/// Comparisons are inlinable, because the layers above compare dates for each message.
@usableFromInline
package struct Tick: Hashable, Comparable, Sendable {
  @usableFromInline package var nanoseconds: Int64

  @inlinable
  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// A date that is never reached.
  @inlinable package static var never: Tick { Tick(nanoseconds: .max) }
  /// A date that has always been reached.
  @inlinable package static var distantPast: Tick { Tick(nanoseconds: .min) }

  /// Now, by the system's monotonic clock.
  package static var monotonicNow: Tick { SystemWaiter.shared.now }

  /// The tick a duration after now.
  package static func after(_ duration: Duration) -> Tick { monotonicNow + Int64(saturating: duration) }

  @inlinable
  package static func == (left: Tick, right: Tick) -> Bool {
    left.nanoseconds == right.nanoseconds
  }

  @inlinable
  package static func < (left: Tick, right: Tick) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  package static func + (left: Tick, nanoseconds: Int64) -> Tick {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(nanoseconds)
    guard overflow else { return Tick(nanoseconds: sum) }
    return nanoseconds > 0 ? .never : .distantPast
  }

  /// The nanoseconds from the right tick to the left one; saturates.
  package static func - (left: Tick, right: Tick) -> Int64 {
    let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
    guard overflow else { return difference }
    return left < right ? .min : .max
  }
}

extension Tick {
  // An instant is only the duration since the epoch: the standard library inlines `SuspendingClock.systemEpoch` into
  // its clients. Its own sums of instants and durations perform checks that are redundant here.

  package init(_ instant: SuspendingClock.Instant) {
    self.init(nanoseconds: Int64(saturating: unsafeBitCast(instant, to: Duration.self)))
  }

  package var instant: SuspendingClock.Instant {
    unsafeBitCast(Duration.nanoseconds(nanoseconds), to: SuspendingClock.Instant.self)
  }

  /// The first tick after `now` among `self`, `self` + `interval`, `self` + 2 · `interval`…, with one division.
  func next(after now: Tick, every interval: Int64) -> Tick {
    guard self <= now else { return self + interval }
    let (late, overflow) = now.nanoseconds.subtractingReportingOverflow(nanoseconds)
    guard !overflow else { return now + interval }
    let (span, spanOverflow) = (late / interval + 1).multipliedReportingOverflow(by: interval)
    return spanOverflow ? .never : self + span
  }
}

// All arithmetic with durations that users choose. The standard library's sums, components and descriptions of a
// duration trap on overflow.

extension Duration {
  /// The description of the duration, limited to the seconds that 64 bits can count, because the standard library traps
  /// beyond them.
  package var text: String { "\(min(max(self, .seconds(Int64.min)), .seconds(Int64.max)))" }

  /// The difference of two durations; saturates.
  package func saturatingDifference(from earlier: Duration) -> Duration {
    let (difference, overflow) = attoseconds.subtractingReportingOverflow(earlier.attoseconds)
    return Duration(attoseconds: overflow ? (attoseconds < 0 ? .min : .max) : difference)
  }
}

extension Int64 {
  /// Adds nanoseconds; saturates.
  package mutating func addSaturating(_ nanoseconds: Int64) {
    let (sum, overflow) = addingReportingOverflow(nanoseconds)
    self = overflow ? (nanoseconds < 0 ? .min : .max) : sum
  }

  /// Adds the nanoseconds of a duration; saturates.
  package mutating func addSaturating(_ duration: Duration) { addSaturating(Int64(saturating: duration)) }

  /// The nanoseconds of a duration, or the nearest number that fits.
  package init(saturating duration: Duration) {
    let whole = duration.attoseconds
    // For values up to half the range, a multiplication replaces the 128-bit division: bits 29 to 92 times 2⁹³ / 10⁹
    // are less than two below the quotient, and the remainder shows whether one is missing.
    let (high, low) = (UInt64(truncatingIfNeeded: whole &>> 64), UInt64(truncatingIfNeeded: whole))
    if high < 500_000_000 {
      let reciprocal: UInt64 = 9_903_520_314_283_042_199
      let quotient = (high &<< 35 | low &>> 29).multipliedFullWidth(by: reciprocal).high
      let rest = low &- quotient &* 1_000_000_000
      self = Int64(truncatingIfNeeded: rest < 1_000_000_000 ? quotient : quotient &+ 1)
      return
    }
    self.init(dividing: whole)
  }

  @inline(never)
  private init(dividing attoseconds: Int128) { self.init(clamping: attoseconds / 1_000_000_000) }

  /// The nanoseconds of a number of seconds, or the nearest number that fits; a value that is not a number counts as
  /// indefinite.
  package init(saturatingSeconds seconds: Double) {
    let nanoseconds = (seconds * 1e9).rounded()
    switch nanoseconds {
    case ..<(-9.2e18): self = .min
    case ..<9.2e18: self = Int64(nanoseconds)
    default: self = .max
    }
  }
}

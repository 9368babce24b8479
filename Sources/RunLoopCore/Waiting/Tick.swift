/// A point of the loop's clock, in nanoseconds.
///
/// On the system's clock this is `CLOCK_MONOTONIC`, which neither jumps with the wall clock nor counts a suspend. Sums
/// saturate: a date further away than the clock can count is ``never``.
package struct Tick: Hashable, Comparable, Sendable {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// A date that does not come.
  package static let never = Tick(nanoseconds: .max)
  /// A date that has always been.
  package static let distantPast = Tick(nanoseconds: .min)

  /// Now, by the system's monotonic clock.
  package static var monotonicNow: Tick { SystemWaiter.shared.now }

  /// So much later than now.
  package static func after(_ duration: Duration) -> Tick { monotonicNow + Int64(saturating: duration) }

  package static func < (left: Tick, right: Tick) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  package static func + (left: Tick, nanoseconds: Int64) -> Tick {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(nanoseconds)
    guard overflow else { return Tick(nanoseconds: sum) }
    return nanoseconds > 0 ? .never : .distantPast
  }
}

extension Tick {
  init(_ instant: SuspendingClock.Instant) {
    self.init(nanoseconds: Int64(saturating: SuspendingClock().systemEpoch.duration(to: instant)))
  }

  package var instant: SuspendingClock.Instant {
    SuspendingClock().systemEpoch.advanced(by: .nanoseconds(nanoseconds))
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

extension Int64 {
  /// The nanoseconds of a duration, the nearest that there are.
  package init(saturating duration: Duration) {
    guard duration < .nanoseconds(Int64.max), duration > .nanoseconds(Int64.min) else {
      self = duration > .zero ? .max : .min
      return
    }
    let (seconds, attoseconds) = duration.components
    let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflow else {
      self = seconds > 0 ? .max : .min
      return
    }
    let (sum, sumOverflow) = nanoseconds.addingReportingOverflow(attoseconds / 1_000_000_000)
    self = sumOverflow ? (seconds > 0 ? .max : .min) : sum
  }

  /// The nanoseconds of so many seconds, the nearest that there are; what is not a number is without end.
  package init(saturatingSeconds seconds: Double) {
    let nanoseconds = (seconds * 1e9).rounded()
    switch nanoseconds {
    case ..<(-9.2e18): self = .min
    case ..<9.2e18: self = Int64(nanoseconds)
    default: self = .max
    }
  }
}

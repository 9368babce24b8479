// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import CRunLoopSystem

/// Turns the ticks of records into nanoseconds of the monotonic clock.
///
/// The process has noted one pair of times when a loop was first watched. The other is that of a file that was kept, or
/// now: the file is on this machine, and the machine has not been started anew.
package struct RecordClock: Sendable {
  private let ticks: UInt64
  private let nanoseconds: Int64
  /// Nanoseconds for each tick.
  private let rate: Double
  /// Whether the process had chosen a clock: before a loop is watched it has not.
  package let isKnown: Bool

  package init(_ header: crl_header) {
    let first = header.calibration.0
    isKnown = first.ticks != 0
    guard header.clock == UInt32(CRL_CLOCK_PROCESSOR) else {
      (ticks, nanoseconds, rate) = (0, 0, 1)
      return
    }
    var second = header.calibration.1
    if second.ticks == 0 { second = RecordClock.pairNow() }
    ticks = first.ticks
    // Whatever stands there, times can be reckoned with.
    nanoseconds = max(-RecordClock.most, min(RecordClock.most, first.monotonic))
    rate = crl_tick_nanoseconds(first, second, header.frequency)
  }

  /// The nanoseconds of so many ticks.
  package func nanoseconds(_ ticks: UInt64) -> Int64 {
    nanoseconds + RecordClock.bounded(Double(Int64(bitPattern: ticks &- self.ticks)) * rate)
  }

  /// Some of these can be added and subtracted.
  private static let most: Int64 = 1 << 60

  private static func bounded(_ value: Double) -> Int64 { Int64(max(-Double(most), min(Double(most), value))) }

  /// Two times that were read at once.
  private static func pairNow() -> crl_times {
    // The thread may lose its processor between two readings: the closest of several counts.
    var least = UInt64.max
    var pair = crl_times(ticks: 0, monotonic: 0, wall: crl_wall_nanoseconds())
    for _ in 0..<16 {
      let before = crl_processor_ticks()
      let now = crl_monotonic_nanoseconds()
      let after = crl_processor_ticks()
      guard after &- before < least else { continue }
      least = after &- before
      pair.ticks = before &+ least / 2
      pair.monotonic = now
    }
    return pair
  }

  /// Notes the second pair in a file that is kept.
  package static func calibrate(_ header: inout crl_header) {
    if header.clock == UInt32(CRL_CLOCK_PROCESSOR) { header.calibration.1 = pairNow() }
  }
}

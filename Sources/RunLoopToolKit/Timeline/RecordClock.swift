// SPDX-License-Identifier: Apache-2.0

package import CRunLoopRecorder
import CRunLoopSystem

/// Converts ticks of records to nanoseconds of the monotonic clock.
///
/// The process recorded a pair of times when a loop was first watched. The second pair comes from the header of a
/// copied file, or is taken now, assuming that the file is on the same machine and the machine has not restarted.
package struct RecordClock: Sendable {
  private let ticks: UInt64
  private let nanoseconds: Int64
  /// The number of nanoseconds per tick.
  private let rate: Double
  /// Whether the recorded process had chosen its clock; it does so when one of its loops is first watched.
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
    // Clamped to prevent overflows, because the header is untrusted data.
    nanoseconds = max(-RecordClock.most, min(RecordClock.most, first.monotonic))
    rate = crl_tick_nanoseconds(first, second, header.frequency)
  }

  /// Converts ticks to nanoseconds.
  package func nanoseconds(_ ticks: UInt64) -> Int64 {
    nanoseconds + RecordClock.bounded(Double(Int64(bitPattern: ticks &- self.ticks)) * rate)
  }

  /// Small enough that a few such values can be added and subtracted.
  private static let most: Int64 = 1 << 60

  private static func bounded(_ value: Double) -> Int64 { Int64(max(-Double(most), min(Double(most), value))) }

  /// Reads both clocks at nearly the same time.
  private static func pairNow() -> crl_times {
    // Uses the closest of several pairs, because the thread may be preempted between two readings.
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

  /// Stores the second pair in a copied file.
  package static func calibrate(_ header: inout crl_header) {
    if header.clock == UInt32(CRL_CLOCK_PROCESSOR) { header.calibration.1 = pairNow() }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore

/// Values computed from the records of a loop.
enum RecordedTimes {
  /// The fraction of recorded time in which the loop did not sleep, or nil without records.
  static func busy(of loop: RunLoop) -> Double? {
    let clock = TickClock()
    let now = clock.now
    var first = now
    var asleep: Int64 = 0
    for record in loop.recordedCallOuts {
      let begin = clock.nanoseconds(record.begin)
      first = min(first, begin)
      guard record.kind == UInt8(CRL_KIND_SLEEP.rawValue) else { continue }
      asleep += max(0, (record.end == 0 ? now : clock.nanoseconds(record.end)) - begin)
    }
    return now > first ? min(1, max(0, 1 - Double(asleep) / Double(now - first))) : nil
  }
}

extension crl_sums {
  /// Converts a number of ticks to nanoseconds.
  static func nanoseconds(_ ticks: UInt64) -> Int64 {
    Int64(clamping: crl_ticks_length(ticks))
  }

  /// How long the innermost call-out has been running without a nested run, or nil if none is open.
  var open: Int64? {
    guard began != 0 else { return nil }
    let now = crl_times_now().ticks
    return now > since ? crl_sums.nanoseconds(now - since) : 0
  }
}

extension Histogram {
  /// Creates a histogram from a loop's sums.
  init(_ sums: crl_histogram) {
    let steps = withUnsafeBytes(of: sums.steps) { Array($0.bindMemory(to: UInt64.self)) }
    let counts = steps.map { Int(clamping: $0) }
    let used = counts.lastIndex { $0 > 0 }.map { $0 + 1 } ?? 0
    self.init(
      counts: Array(counts.prefix(used)), sum: Int64(clamping: sums.sum), longest: Int64(clamping: sums.longest))
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore

/// What the records of a loop have said about times, since somebody asked first.
final class RecordedTimes: LoopAttachment, @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private let lock = Lock()
  private var callOuts = Histogram()
  private var delays = Histogram()
  /// The greatest number of a record that was counted.
  private var last: UInt64 = 0
  /// The records before it whose call-outs were not over.
  private var open: Set<UInt64> = []

  /// What the records say now.
  struct Times {
    var callOuts = Histogram()
    var delays = Histogram()
    var busy: Double?
  }

  func loopDidEnd() {}

  /// Counts what has been recorded since the last time.
  static func now(of loop: RunLoop) -> Times {
    guard let all = loop.attachment(RecordedTimes.self, orMake: RecordedTimes.init)?.attachment else { return Times() }
    return all.count(loop)
  }

  private func count(_ loop: RunLoop) -> Times {
    lock.lock()
    defer { lock.unlock() }
    let records = loop.recordedCallOuts
    let clock = TickClock()
    let (before, openBefore) = (last, open)
    open = []
    for record in records {
      let isNew = record.number > before
      guard isNew || openBefore.contains(record.number) else { continue }
      last = max(last, record.number)
      // What is no call-out is no work.
      if record.kind < UInt8(CRL_KIND_HOST.rawValue) {
        if record.end == 0 {
          open.insert(record.number)
        } else {
          callOuts.add(clock.nanoseconds(record.end) - clock.nanoseconds(record.begin))
        }
      }
      if isNew, record.kind <= UInt8(CRL_KIND_JOB.rawValue), let posted = loop.posted(record) {
        delays.add(clock.nanoseconds(record.begin) - clock.nanoseconds(posted))
      }
    }
    return Times(callOuts: callOuts, delays: delays, busy: Self.busy(records, clock))
  }

  /// The part of the time of the records in which the loop did not sleep.
  private static func busy(_ records: [crl_record], _ clock: TickClock) -> Double? {
    let now = clock.now
    var first = now
    var asleep: Int64 = 0
    for record in records {
      let begin = clock.nanoseconds(record.begin)
      first = min(first, begin)
      guard record.kind == UInt8(CRL_KIND_SLEEP.rawValue) else { continue }
      asleep += max(0, (record.end == 0 ? now : clock.nanoseconds(record.end)) - begin)
    }
    return now > first ? min(1, max(0, 1 - Double(asleep) / Double(now - first))) : nil
  }
}

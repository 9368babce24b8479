// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import CRunLoopToolKit
import RunLoopLibC

/// Observes a running process for some time while it records.
package final class TimelineWatch {
  private let target: TargetProcess
  private let file: RecordFile

  package init(_ target: TargetProcess, _ file: RecordFile) {
    self.target = target
    self.file = file
  }

  /// Records for a number of nanoseconds, until the process ends, or until interrupted.
  ///
  /// - Parameter alsoLook: Called after each read, at least every 20 milliseconds.
  package func look(for nanoseconds: Int64, _ alsoLook: () -> Void = {}) throws(RecordError) -> Timeline {
    let hold = try LevelHold(file, CRL_RECORD.rawValue)
    defer { hold.release() }
    // After an interruption, the results so far are still written.
    crlt_interruption_begin()
    defer { crlt_interruption_end() }
    let reader = TimelineReader(file, of: target)
    let begin = crl_monotonic_nanoseconds()
    // If the process has never recorded, its clock is unknown, and there is nothing to leave out.
    try reader.read(since: firstTicks)
    reader.readShares()
    var pause: Int64 = 5_000_000
    var nextShares = begin + 20_000_000
    while crl_monotonic_nanoseconds() - begin < nanoseconds, crlt_interruption_has_come() == 0 {
      let rest = nanoseconds - (crl_monotonic_nanoseconds() - begin)
      usleep(UInt32(max(1, min(pause, rest) / 1000)))
      guard target.isAlive else { break }
      do throws(RecordError) {
        try reader.read()
      } catch {
        // A process without a file may end while its memory is read.
        if target.isAlive { throw error }
        return reader.finish(end: crl_monotonic_nanoseconds(), begin: begin)
      }
      alsoLook()
      // Keeps the rings from being overwritten by more than half between reads.
      if reader.fill > 0.25 { pause = max(200_000, pause / 2) } else { pause = min(20_000_000, pause * 5 / 4) }
      if crl_monotonic_nanoseconds() >= nextShares {
        reader.readShares()
        nextShares = crl_monotonic_nanoseconds() + 20_000_000
      }
    }
    // The file stays mapped after the process has ended.
    try? reader.read()
    reader.readShares()
    return reader.finish(end: crl_monotonic_nanoseconds(), begin: begin)
  }

  /// The current time on the clock of the records.
  private var firstTicks: UInt64 {
    file.header.clock == UInt32(CRL_CLOCK_PROCESSOR) ? crl_processor_ticks() : UInt64(crl_monotonic_nanoseconds())
  }
}

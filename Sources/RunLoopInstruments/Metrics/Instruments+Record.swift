// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopLibC
import RunLoopCore

extension Instruments {
  /// Writes the recent records of this process's loops to a file, like a flight recorder.
  ///
  /// `runloop postmortem FILE` reads the file. It is readable only by the user of the process. It is written under an
  /// unpredictable name and then replaces any file at the path; a symbolic link is neither followed nor replaced. Can
  /// be called from any thread, and does not block any loop.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - last: The maximum age of a call-out or sleep at its beginning. Each loop keeps its last 2048 records.
  /// - Throws: ``InstrumentsError/nothingRecorded``, or ``InstrumentsError/system(_:)`` if the file cannot be written.
  public static func writeRecord(to path: String, last: Duration) throws(InstrumentsError) {
    do throws(SystemError) {
      let file = try NewFile(path: path)
      let answer = -crl_records_write(file.descriptor.number, TickClock().ticks(before: Int64(saturating: last)))
      guard answer == 0 else { throw SystemError(call: "write", number: answer) }
      try file.finish()
    } catch {
      throw error.call == "write" && error.number == ENODATA ? .nothingRecorded : .system(error)
    }
  }
}

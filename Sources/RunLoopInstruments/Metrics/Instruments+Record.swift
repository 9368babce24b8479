// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopLibC
import RunLoopCore

extension Instruments {
  /// Writes the recent records of the loops of this process to a file, as a flight recorder does.
  ///
  /// `runloop postmortem FILE` reads it. The file is written under another name, which others cannot foresee, and then
  /// replaces a file at the path, for the user of the process alone; a link is neither followed nor replaced. Can be
  /// called from any thread; no loop waits for it.
  ///
  /// - Parameters:
  ///   - path: The file to write.
  ///   - last: How long ago a call-out or sleep may have begun. Each loop keeps its last 2048 records.
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

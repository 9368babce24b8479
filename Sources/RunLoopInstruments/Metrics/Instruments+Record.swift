// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

extension Instruments {
  /// Writes the recent records of the loops of this process to a file, as a flight recorder does.
  ///
  /// `runloop postmortem FILE` reads it. The file is made, or replaced, for the user of the process alone; no link is
  /// followed. Can be called from any thread; no loop waits for it.
  ///
  /// - Parameters:
  ///   - path: The file to write.
  ///   - last: How long ago a call-out or sleep may have begun. Each loop keeps its last 2048 records.
  /// - Throws: ``InstrumentsError/nothingRecorded``, or ``InstrumentsError/system(_:)`` if the file cannot be written.
  public static func writeRecord(to path: String, last: Duration) throws(InstrumentsError) {
    let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .system(SystemError(call: "open", number: errno)) }
    defer { close(file) }
    let answer = -crl_records_write(file, TickClock().ticks(before: Int64(saturating: last)))
    if answer == 0 { return }
    unlink(path)
    throw answer == ENODATA ? .nothingRecorded : .system(SystemError(call: "write", number: answer))
  }
}

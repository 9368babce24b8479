// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import CRunLoopRecorder
import RunLoopCore
import RunLoopLibC

/// Copying of records to files.
enum RecordCopy {
  /// Copies a record without its unwritten pages, and stores the current time of both clocks.
  static func write(_ source: Int32, to path: String) throws(RecordError) {
    do throws(SystemError) {
      let file = try NewFile(path: path)
      try write(source, file.descriptor.number)
      try file.finish()
    } catch {
      throw RecordError("\(path) cannot be written: \(String(cString: strerror(error.number)))")
    }
  }

  private static func write(_ source: Int32, _ target: Int32) throws(SystemError) {
    var status = stat()
    guard fstat(source, &status) == 0, ftruncate(target, status.st_size) == 0 else { throw failure() }
    var place: off_t = 0
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // SEEK_DATA, which Swift's Glibc module does not provide.
      place = lseek(source, place, 3)
      guard place >= 0 else { break }
      let count = pread(source, &chunk, chunk.count, place)
      guard count > 0 else { break }
      guard pwrite(target, chunk, count, place) == count else { throw failure() }
      place += off_t(count)
    }
    var header = crl_header()
    let size = MemoryLayout<crl_header>.size
    guard pread(target, &header, size, 0) == size else { throw failure() }
    RecordClock.calibrate(&header)
    guard pwrite(target, &header, size, 0) == size else { throw failure() }
  }

  private static func failure() -> SystemError { SystemError(call: "write", number: errno) }
}

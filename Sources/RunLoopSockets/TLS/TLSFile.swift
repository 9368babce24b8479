// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

enum TLSFile {
  /// The maximum size of a file in bytes, far above the quarter of a mebibyte of the system's certificates.
  static let limit = 16 << 20

  /// Reads a file.
  ///
  /// - Throws: The error of `open` or `read`, or `EFBIG` if the file is larger than the limit.
  static func read(_ path: String) throws(TLSError) -> [UInt8] {
    do throws(SystemError) {
      let file = OwnedDescriptor(
        try SystemCall.openFile.makeUninterrupted {
          // Nonblocking, so that opening a FIFO without a writer does not hang.
          let answer = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
          return answer < 0 ? -errno : answer
        })
      return try contents(of: file)
    } catch {
      throw TLSError(.file(path: path, error))
    }
  }

  private static func contents(of file: OwnedDescriptor) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var failure: SystemError?
    while failure == nil, bytes.count <= limit {
      let chunk = [UInt8](unsafeUninitializedCapacity: 64 * 1024) { room, count in
        do throws(SystemError) {
          count = Int(
            try SystemCall.eventRead.makeUninterrupted {
              let answer = RunLoopLibC.read(file.number, room.baseAddress, room.count)
              return answer < 0 ? -errno : Int32(answer)
            })
        } catch {
          failure = error
        }
      }
      if chunk.isEmpty { break }
      bytes += chunk
    }
    if let failure { throw failure }
    guard bytes.count <= limit else { throw SystemError(call: SystemCall.eventRead.rawValue, number: EFBIG) }
    return bytes
  }
}

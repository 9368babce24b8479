// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore

/// The files of certificates and keys.
enum TLSFile {
  /// More than this is no file of certificates: the system's has a quarter of a mebibyte.
  static let limit = 16 << 20

  /// Reads a file.
  ///
  /// - Throws: `open`, or `read`, with `EFBIG` for one that is longer than the limit.
  static func read(_ path: String) throws(TLSError) -> [UInt8] {
    do throws(SystemError) {
      let file = OwnedDescriptor(
        try SystemCall.openFile.makeUninterrupted {
          // Something that nobody writes to does not hang its reader.
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

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A nonblocking pipe, closed on deinitialization; can be used from any thread.
final class Pipe: Sendable {
  let reading: Int32
  let writing: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    let answer = pipe(&ends)
    precondition(answer == 0, "no pipe could be made (error \(errno))")
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    reading = ends[0]
    writing = ends[1]
  }

  deinit {
    close(reading)
    close(writing)
  }

  /// Writes one byte.
  func write() {
    _ = Glibc.write(writing, [UInt8(7)], 1)
  }

  /// Reads up to sixteen available bytes, and returns their number.
  @discardableResult
  func read() -> Int {
    var bytes = [UInt8](repeating: 0, count: 16)
    return max(0, Glibc.read(reading, &bytes, bytes.count))
  }
}

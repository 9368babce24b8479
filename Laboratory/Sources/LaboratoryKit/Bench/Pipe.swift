// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Two connected descriptors, closed when they go: what is written to one is read from the other.
///
/// Neither blocks. Any thread.
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

  /// Reads the bytes that are there, at most sixteen, and says how many they were.
  @discardableResult
  func read() -> Int {
    var bytes = [UInt8](repeating: 0, count: 16)
    return max(0, Glibc.read(reading, &bytes, bytes.count))
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopTimeline

/// A file that is written whole, or not at all: what was there stays until then.
///
/// One thread.
final class OutputFile {
  private let path: String
  private let descriptor: Int32
  /// Where it is written until it is whole; nil: what is there is no regular file, such as a pipe, and is written to.
  private let temporary: String?
  private let target: String

  init(_ path: String) throws(RecordError) {
    self.path = path
    // What a link stands for is replaced, and not the link.
    target =
      realpath(path, nil).map { resolved in
        defer { free(resolved) }
        return String(cString: resolved)
      } ?? path
    var status = stat()
    let isThere = stat(target, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFREG {
      temporary = nil
      descriptor = open(target, O_WRONLY | O_CLOEXEC)
    } else {
      let name = "\(target).\(getpid()).part"
      temporary = name
      // Whoever may not write to what is there may not replace it either.
      if isThere, access(target, W_OK) != 0 {
        descriptor = -1
      } else {
        descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
        if descriptor >= 0, isThere { fchmod(descriptor, status.st_mode & 0o777) }
      }
    }
    guard descriptor >= 0 else { throw failure() }
  }

  deinit { close(descriptor) }

  private func failure() -> RecordError {
    RecordError("\(path) cannot be written: \(String(cString: strerror(errno)))")
  }

  func write(_ bytes: [UInt8]) throws(RecordError) {
    var place = 0
    while place < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        RunLoopLibC.write(descriptor, buffer.baseAddress.map { $0 + place }, bytes.count - place)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure() }
      place += count
    }
  }

  /// Puts the file in its place.
  func finish() throws(RecordError) {
    // Some file systems say only now that they are full.
    guard fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS else { throw failure() }
    if let temporary, rename(temporary, target) != 0 { throw failure() }
  }

  /// Leaves what was there before.
  func remove() {
    if let temporary { unlink(temporary) }
  }
}

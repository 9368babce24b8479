// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// Paths and contents of the tests' files.
enum RunLoopTestPath {
  private static let counter = Counter()

  /// Returns a name that no other test uses.
  static func next() -> String { "\(getpid()).\(counter.add())" }

  static func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    _ = Glibc.write(file, bytes, bytes.count)
  }

  /// Returns a file's contents, or nil if there is no such file.
  static func read(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = Glibc.read(file, &buffer, buffer.count)
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
  }

  static func remove(_ path: String) {
    for name in [path, path + ".part", path + ".part.json"] { unlink(name) }
  }
}

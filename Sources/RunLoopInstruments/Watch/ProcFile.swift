// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC

/// Reading of small files and links in `/proc`.
package enum ProcFile {
  /// Returns the contents of a file, or nil if it cannot be read.
  static func read(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var size = 4096
    while true {
      let known = bytes.count
      var answer = 0
      bytes += [UInt8](
        unsafeUninitializedCapacity: size,
        initializingWith: { buffer, count in
          answer = RunLoopLibC.read(descriptor, buffer.baseAddress, size)
          count = max(0, answer)
        })
      if answer < 0, errno == EINTR { continue }
      guard answer > 0 else { return answer < 0 && known == 0 ? nil : String(decoding: bytes, as: UTF8.self) }
      size = 65536
    }
  }

  /// Returns the names in a directory, or none if it cannot be read.
  package static func names(in directory: String) -> [String] {
    guard let list = opendir(directory) else { return [] }
    defer { closedir(list) }
    var names: [String] = []
    while let entry = readdir(list) {
      names.append(
        withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    return names
  }

  /// Returns the error of reading a file, or nil if it can be read.
  static func failure(_ path: String) -> SystemError? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return SystemError(call: "open (\(path))", number: errno) }
    defer { close(descriptor) }
    var byte: UInt8 = 0
    guard RunLoopLibC.read(descriptor, &byte, 1) < 0 else { return nil }
    return SystemError(call: "read (\(path))", number: errno)
  }

  /// Returns the target of a symbolic link.
  package static func link(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = buffer.withUnsafeMutableBytes { buffer in
      buffer.withMemoryRebound(to: CChar.self) { text in
        text.baseAddress.map { readlink(path, $0, text.count) } ?? -1
      }
    }
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The identifier that the linker stores in a program to distinguish builds.
enum BuildID {
  /// Whether a regular file belongs to a build; an empty identity matches any file.
  ///
  /// The path comes from an untrusted record, and reading anything but a regular file could block.
  static func isKept(_ path: String, _ identity: [UInt8]) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    return identity.isEmpty || read(path) == identity
  }

  /// Reads the build ID from a file's notes, or returns nil.
  static func read(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard let header = ElfBytes.read(descriptor, 0, 64), header[0..<6] == [0x7f, 0x45, 0x4c, 0x46, 2, 1] else {
      return nil
    }
    let (offset, size, count) = (header.number(32, 8), header.number(54, 2), header.number(56, 2))
    // Programs have about twelve segments and short notes; the limits prevent wasted time.
    guard size >= 56, count <= 256, let segments = ElfBytes.read(descriptor, offset, size * count) else { return nil }
    for index in 0..<count {
      let segment = segments[(index * size)..<((index + 1) * size)]
      let start = index * size
      guard segments.number(start, 4) == 4, segment.count == size else { continue }
      let length = Swift.min(segments.number(start + 32, 8), 1 << 16)
      guard let notes = ElfBytes.read(descriptor, segments.number(start + 8, 8), length) else { continue }
      if let found = find(notes) { return found }
    }
    return nil
  }

  private static func find(_ notes: [UInt8]) -> [UInt8]? {
    var place = 0
    while place + 12 <= notes.count {
      let (name, size, kind) = (notes.number(place, 4), notes.number(place + 4, 4), notes.number(place + 8, 4))
      let data = place + 12 + (name + 3) & ~3
      guard data + size <= notes.count else { return nil }
      if kind == 3, name == 4, notes[(place + 12)..<(place + 15)] == [0x47, 0x4e, 0x55] {
        return Array(notes[data..<(data + min(size, 20))])
      }
      place = data + (size + 3) & ~3
    }
    return nil
  }
}

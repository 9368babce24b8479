// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The references in a program to a separate file with its debug information.
///
/// A symbolizer opens that file. The author of the program chooses the name, which may lead anywhere, including to a
/// pipe that blocks forever.
enum DebugLink {
  /// Returns whether a program is safe for a symbolizer: any file that it names in the usual directories is missing or
  /// regular.
  static func isHarmless(_ path: String) -> Bool {
    guard let names = names(in: path) else { return false }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    return names.allSatisfy { name in
      guard !name.isEmpty, !name.contains("/") else { return false }
      return ["\(directory)/\(name)", "\(directory)/.debug/\(name)"].allSatisfy { candidate in
        var status = stat()
        return stat(candidate, &status) == 0 ? status.st_mode & S_IFMT == S_IFREG : errno == ENOENT || errno == ENOTDIR
      }
    }
  }

  /// Returns the names in a program's sections, or nil if the sections are unreadable or inconsistent.
  private static func names(in path: String) -> [String]? {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard let header = ElfBytes.read(descriptor, 0, 64), header[0..<6] == [0x7f, 0x45, 0x4c, 0x46, 2, 1] else {
      return nil
    }
    let (offset, size, count) = (header.number(40, 8), header.number(58, 2), header.number(60, 2))
    // The program has no sections.
    if offset == 0 { return [] }
    // Programs have about forty sections; the limit prevents wasted time.
    guard size == 64, 0 < count, count <= 4096, let table = ElfBytes.read(descriptor, offset, size * count) else {
      return nil
    }
    let last = header.number(62, 2)
    func content(_ section: Int, most: Int = .max) -> [UInt8]? {
      let (place, length) = (table.number(section * size + 24, 8), table.number(section * size + 32, 8))
      return ElfBytes.read(descriptor, place, min(most, length))
    }
    guard last < count, let texts = content(last), texts.count <= 1 << 16 else { return nil }
    var found: [String] = []
    for section in 0..<count {
      let name = table.number(section * size, 4)
      guard name < texts.count else { return nil }
      // LLVM ignores any number of leading dots and underscores.
      let text = texts[name...].prefix { $0 != 0 }.drop { $0 == 0x2e || $0 == 0x5f }
      guard text.elementsEqual("gnu_debuglink".utf8) else { continue }
      guard let bytes = content(section, most: 4096) else { return nil }
      found.append(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
    }
    return found
  }
}

/// Reading of bytes from a program's file.
enum ElfBytes {
  /// Reads bytes at an offset, or returns nil if there are too few or the count is too large for a header.
  static func read(_ descriptor: Int32, _ offset: Int, _ count: Int) -> [UInt8]? {
    guard count > 0, count < 1 << 23, offset >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    return pread(descriptor, &bytes, count, offset) == count ? bytes : nil
  }
}

extension [UInt8] {
  /// Reads a little-endian number at a place.
  func number(_ place: Int, _ size: Int) -> Int {
    Int(truncatingIfNeeded: (0..<size).reduce(UInt64(0)) { $0 | UInt64(self[place + $1]) << UInt64(8 * $1) })
  }
}

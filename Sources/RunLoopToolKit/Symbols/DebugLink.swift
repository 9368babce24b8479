// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// What a program says about a file that has its debugging information.
///
/// A symbolizer opens the file that is named there. The name is chosen by the author of the program: it may lead
/// anywhere, and to a pipe that is opened without end.
enum DebugLink {
  /// Whether a symbolizer can be given a program: it names no such file, or one in the directories that are usual,
  /// which is missing or a regular file.
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

  /// The names in a program's sections; nil if the sections cannot be read, or contradict each other.
  private static func names(in path: String) -> [String]? {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard let header = ElfBytes.read(descriptor, 0, 64), header[0..<6] == [0x7f, 0x45, 0x4c, 0x46, 2, 1] else {
      return nil
    }
    let (offset, size, count) = (header.number(40, 8), header.number(58, 2), header.number(60, 2))
    // A program without sections.
    if offset == 0 { return [] }
    // Programs have some forty: more would only take time.
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
      // LLVM does not mind how many dots and underscores are in front.
      let text = texts[name...].prefix { $0 != 0 }.drop { $0 == 0x2e || $0 == 0x5f }
      guard text.elementsEqual("gnu_debuglink".utf8) else { continue }
      guard let bytes = content(section, most: 4096) else { return nil }
      found.append(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
    }
    return found
  }
}

/// Bytes of a program's file.
enum ElfBytes {
  /// So many bytes from a place on; nil if they are not all there, or more than headers are.
  static func read(_ descriptor: Int32, _ offset: Int, _ count: Int) -> [UInt8]? {
    guard count > 0, count < 1 << 23, offset >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    return pread(descriptor, &bytes, count, offset) == count ? bytes : nil
  }
}

extension [UInt8] {
  /// A little-endian number at a place.
  func number(_ place: Int, _ size: Int) -> Int {
    Int(truncatingIfNeeded: (0..<size).reduce(UInt64(0)) { $0 | UInt64(self[place + $1]) << UInt64(8 * $1) })
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

extension FileChangeSource {
  /// A path, which on Linux is bytes and need not be text.
  public struct Path: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The bytes, without an end mark.
    public let bytes: [UInt8]

    /// Makes a path of bytes.
    public init(bytes: [UInt8]) {
      self.bytes = bytes
    }

    /// Makes a path of text, as UTF-8.
    public init(_ string: String) {
      bytes = Array(string.utf8)
    }

    /// Makes a path of text, as UTF-8.
    public init(stringLiteral string: String) {
      self.init(string)
    }

    /// The path as text; bytes that are not UTF-8 become replacement characters.
    public var string: String { String(decoding: bytes, as: UTF8.self) }

    /// The names of the path, without those that lead nowhere.
    var names: [[UInt8]] {
      bytes.split(separator: UInt8(ascii: "/")).map(Array.init).filter { $0 != [UInt8(ascii: ".")] }
    }

    /// The path from the root, by the working directory of now; as it is if that has none.
    package var absolute: Path {
      guard bytes.first != UInt8(ascii: "/"), let here = getcwd(nil, 0) else { return self }
      defer { free(here) }
      let directory = Path(bytes: UnsafeBufferPointer(start: here, count: strlen(here)).map { UInt8(bitPattern: $0) })
      // One that cannot be reached from the root has no such path.
      return directory.bytes.first == UInt8(ascii: "/") && !bytes.isEmpty ? directory.appending(bytes) : self
    }

    /// The path of something in this directory.
    func appending(_ name: [UInt8]) -> Path {
      Path(bytes: bytes.last == UInt8(ascii: "/") ? bytes + name : bytes + [UInt8(ascii: "/")] + name)
    }
  }
}

extension FileChangeSource.Path: CustomStringConvertible {
  /// The path as text.
  public var description: String { string }
}

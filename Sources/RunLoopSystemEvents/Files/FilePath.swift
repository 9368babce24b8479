// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

extension FileChangeSource {
  /// A path, which on Linux consists of bytes and need not be valid text.
  public struct Path: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The bytes, without a terminating zero.
    public let bytes: [UInt8]

    /// Creates a path from bytes.
    public init(bytes: [UInt8]) {
      self.bytes = bytes
    }

    /// Creates a path from a text, as UTF-8.
    public init(_ string: String) {
      bytes = Array(string.utf8)
    }

    /// Creates a path from a text, as UTF-8.
    public init(stringLiteral string: String) {
      self.init(string)
    }

    /// The path as text, with replacement characters for invalid UTF-8.
    public var string: String { String(decoding: bytes, as: UTF8.self) }

    /// The components of the path, without "." and empty ones.
    var names: [[UInt8]] {
      bytes.split(separator: UInt8(ascii: "/")).map(Array.init).filter { $0 != [UInt8(ascii: ".")] }
    }

    /// The absolute path, based on the current working directory, or the path itself if that directory has none.
    package var absolute: Path {
      guard bytes.first != UInt8(ascii: "/"), let here = getcwd(nil, 0) else { return self }
      defer { free(here) }
      let directory = Path(bytes: UnsafeBufferPointer(start: here, count: strlen(here)).map { UInt8(bitPattern: $0) })
      // A working directory that is not reachable from the root has no absolute path.
      return directory.bytes.first == UInt8(ascii: "/") && !bytes.isEmpty ? directory.appending(bytes) : self
    }

    /// Returns the path of an entry of this directory.
    func appending(_ name: [UInt8]) -> Path {
      Path(bytes: bytes.last == UInt8(ascii: "/") ? bytes + name : bytes + [UInt8(ascii: "/")] + name)
    }
  }
}

extension FileChangeSource.Path: CustomStringConvertible {
  /// The path as text.
  public var description: String { string }
}

// SPDX-License-Identifier: Apache-2.0

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

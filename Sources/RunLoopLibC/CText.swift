// SPDX-License-Identifier: Apache-2.0

/// A string without zero bytes, which C reads in full.
///
/// C ends a string at its first zero byte, so a Swift `String` passed as a path may name a different file than the one
/// the caller checked: `evil.sh\0.jpg` is `evil.sh`. All paths are passed to C as this type, which rejects the byte.
/// ``Paths.swift`` declares the C library's calls for Swift strings accordingly, and hides those that truncate.
package struct CText: Hashable, Sendable {
  /// The error for a string that contains a zero byte.
  package struct ZeroByte: Error, Hashable, Sendable {
    package init() {}
  }

  /// The bytes, including the terminating zero.
  private let stored: ContiguousArray<CChar>

  /// The bytes, without the terminating zero.
  package var bytes: [UInt8] { stored.dropLast().map { UInt8(bitPattern: $0) } }

  package init(_ text: some StringProtocol) throws(ZeroByte) {
    try self.init(bytes: text.utf8)
  }

  package init(bytes text: some Collection<UInt8>) throws(ZeroByte) {
    guard !text.contains(0) else { throw ZeroByte() }
    var bytes = ContiguousArray<CChar>()
    bytes.reserveCapacity(text.count + 1)
    for byte in text { bytes.append(CChar(bitPattern: byte)) }
    bytes.append(0)
    stored = bytes
  }

  /// Creates a string from a literal of the project, such as the path of a system file.
  package init(known text: StaticString) {
    stored = text.withUTF8Buffer { buffer in
      precondition(!buffer.contains(0), "a text of the project contains a zero byte")
      return ContiguousArray(buffer.map { CChar(bitPattern: $0) } + [0])
    }
  }

  /// Calls `body` with a C string that is valid until `body` returns.
  package func withPointer<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    stored.withUnsafeBufferPointer { buffer in
      // Never empty, because of the terminating zero.
      guard let start = buffer.baseAddress else { fatalError("a text without its end") }
      return body(start)
    }
  }

  /// Returns a copy that the caller releases with `free`, or nil if out of memory.
  package func copy() -> UnsafeMutablePointer<CChar>? { withPointer { strdup($0) } }

  /// Calls `body` with a C string, or sets `errno` to `EINVAL` and returns `failing` if `text` contains a zero byte.
  static func call<Result>(_ text: String, failing: Result, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
    do throws(ZeroByte) {
      return try CText(text).withPointer(body)
    } catch {
      errno = EINVAL
      return failing
    }
  }
}

extension CText: CustomStringConvertible {
  /// The string, with replacement characters for bytes that are not UTF-8.
  package var description: String { String(decoding: bytes, as: UTF8.self) }
}

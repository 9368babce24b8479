// SPDX-License-Identifier: Apache-2.0

/// A text that C takes whole: it contains no zero byte.
///
/// C ends a text at its first zero byte. A path that Swift passes to C as a `String` therefore names another file than
/// the caller has checked: `evil.sh\0.jpg` is `evil.sh`. Whatever reaches C as a path is made by this type, which
/// rejects the byte. ``Paths.swift`` declares the C library's calls for texts of Swift in this way, and hides those
/// that cut.
package struct CText: Hashable, Sendable {
  /// A text contains a zero byte.
  package struct ZeroByte: Error, Hashable, Sendable {
    package init() {}
  }

  /// With the zero byte that ends it.
  private let stored: ContiguousArray<CChar>

  /// The bytes, without the zero byte.
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

  /// A text of the project's own, such as the path of a file of the system.
  package init(known text: StaticString) {
    stored = text.withUTF8Buffer { buffer in
      precondition(!buffer.contains(0), "a text of the project contains a zero byte")
      return ContiguousArray(buffer.map { CChar(bitPattern: $0) } + [0])
    }
  }

  /// Calls `body` with the text as C takes it, which is valid until it returns.
  package func withPointer<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    stored.withUnsafeBufferPointer { buffer in
      // The zero byte makes it never empty.
      guard let start = buffer.baseAddress else { fatalError("a text without its end") }
      return body(start)
    }
  }

  /// A copy that the caller releases with `free`; nil without memory.
  package func copy() -> UnsafeMutablePointer<CChar>? { withPointer { strdup($0) } }

  /// Calls `body` with the text as C takes it, or returns the answer of a call that fails with `EINVAL`.
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
  /// The text; bytes that are not UTF-8 become replacement characters.
  package var description: String { String(decoding: bytes, as: UTF8.self) }
}

// SPDX-License-Identifier: Apache-2.0

/// Header fields as received, in one buffer, which are converted to strings only when they are accessed.
///
/// Each field is stored as three 4-byte lengths, those of the text, the name and the value, followed by the text. The
/// text begins with the name and ends with the value.
struct WireFields: Sendable {
  private var bytes: [UInt8] = []
  private var lastField = 0
  /// Whether the last field has been continued, so that its value is UTF-8.
  private var isLastDecoded = false
  private(set) var count = 0

  private static let prefix = 12
  /// A capacity that suffices for most responses.
  private static let usualSize = 512

  var isEmpty: Bool { count == 0 }

  /// Appends a field, or returns false if the buffer would become too large.
  ///
  /// - Parameters:
  ///   - text: A text that begins with the name and ends with the value.
  ///   - nameCount: The length of the name in bytes.
  ///   - valueCount: The length of the value in bytes.
  mutating func append(_ text: UnsafeRawBufferPointer, nameCount: Int, valueCount: Int) -> Bool {
    guard bytes.count + text.count < Int(Int32.max) else { return false }
    if bytes.isEmpty { bytes.reserveCapacity(Self.usualSize) }
    lastField = bytes.count
    isLastDecoded = false
    count += 1
    withUnsafeBytes(of: (UInt32(text.count), UInt32(nameCount), UInt32(valueCount))) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: text)
    return true
  }

  /// Continues the last field, or returns false if the buffer would become too large.
  ///
  /// - Complexity: Amortized O(n), where n is the length of the line, as there may be very many continuation lines.
  mutating func continueLast(with line: UnsafeRawBufferPointer) -> Bool {
    // Lines are decoded individually.
    guard isLastDecoded || decodeLast() else { return false }
    let more = Self.decode(line)
    let added = 1 + more.utf8.count
    guard bytes.count + added < Int(Int32.max) else { return false }
    bytes.append(32)
    bytes.append(contentsOf: more.utf8)
    let offset = lastField
    bytes.withUnsafeMutableBytes { bytes in
      for index in [0, 2] {
        let place = offset + 4 * index
        let length = bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)
        bytes.storeBytes(of: length + UInt32(added), toByteOffset: place, as: UInt32.self)
      }
    }
    return true
  }

  /// Converts the value of the last field to UTF-8, or returns false if the buffer would become too large.
  private mutating func decodeLast() -> Bool {
    let (name, value) = withField(at: lastField) { name, value, _ in ([UInt8](name), Self.decode(value)) }
    bytes.removeSubrange(lastField...)
    count -= 1
    isLastDecoded = (name + value.utf8).withUnsafeBytes {
      append($0, nameCount: name.count, valueCount: value.utf8.count)
    }
    return isLastDecoded
  }

  /// Whether the last field has one of these names.
  func lastIsNamed(_ names: StaticString...) -> Bool {
    guard !isEmpty else { return false }
    return withField(at: lastField) { name, _, _ in
      names.contains { Self.isSame(name, $0.utf8Start, $0.utf8CodeUnitCount) }
    }
  }

  var lastName: String {
    isEmpty ? "" : withField(at: lastField) { name, _, _ in String(decoding: name, as: UTF8.self) }
  }

  /// All fields as strings.
  ///
  /// - Complexity: O(n), where n is their total length in bytes.
  var all: [HTTP.Headers.Field] {
    var fields: [HTTP.Headers.Field] = []
    fields.reserveCapacity(count)
    forEach { name, value in
      fields.append(HTTP.Headers.Field(String(decoding: name, as: UTF8.self), Self.decode(value)))
      return true
    }
    return fields
  }

  func first(_ name: String) -> String? {
    var found: String?
    forEachValue(of: name) { value in
      found = Self.decode(value)
      return false
    }
    return found
  }

  /// The first value of a name, in which bytes outside ASCII are percent-encoded unless the value is UTF-8.
  func firstReference(_ name: String) -> String? {
    var found: String?
    forEachValue(of: name) { value in
      found = String(validating: value, as: UTF8.self) ?? Self.percentEncoded(value)
      return false
    }
    return found
  }

  private static func percentEncoded(_ bytes: UnsafeRawBufferPointer) -> String {
    bytes.reduce(into: "") { text, byte in
      if byte < 0x80 {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + String(byte, radix: 16, uppercase: true)
      }
    }
  }

  func values(of name: String) -> [String] {
    var values: [String] = []
    forEachValue(of: name) { value in
      values.append(Self.decode(value))
      return true
    }
    return values
  }

  /// Calls a closure with the bytes of each value of a name until it returns false.
  @inline(__always)
  func forEachValue(of name: String, _ body: (UnsafeRawBufferPointer) -> Bool) {
    var name = name
    name.withUTF8 { wanted in
      guard let start = wanted.baseAddress else { return }
      forEach { name, value in Self.isSame(name, start, wanted.count) ? body(value) : true }
    }
  }

  @inline(__always)
  private func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool) {
    var next = 0
    while next < bytes.count {
      let (end, goesOn) = withField(at: next) { name, value, end in (end, body(name, value)) }
      guard goesOn else { return }
      next = end
    }
  }

  /// Calls a closure with the name and value of the field at an offset, and the offset of the next field.
  @inline(__always)
  private func withField<Result>(
    at offset: Int, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Int) -> Result
  ) -> Result {
    bytes.withUnsafeBytes { bytes in
      func length(_ index: Int) -> Int {
        Int(bytes.loadUnaligned(fromByteOffset: offset + 4 * index, as: UInt32.self))
      }
      let text = offset + Self.prefix
      let end = text + length(0)
      return body(
        UnsafeRawBufferPointer(rebasing: bytes[text..<text + length(1)]),
        UnsafeRawBufferPointer(rebasing: bytes[end - length(2)..<end]), end)
    }
  }

  /// Returns whether two names are equal, ignoring case.
  private static func isSame(_ left: UnsafeRawBufferPointer, _ right: UnsafePointer<UInt8>, _ count: Int) -> Bool {
    guard left.count == count else { return false }
    for index in 0..<count where left[index] != right[index] {
      guard HTTP.Headers.lower(left[index]) == HTTP.Headers.lower(right[index]) else { return false }
    }
    return true
  }

  /// Decodes UTF-8, or Latin-1 if the bytes are not valid UTF-8.
  static func decode(_ bytes: UnsafeRawBufferPointer) -> String {
    if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
    if let text = String(validating: bytes, as: UTF8.self) { return text }
    var text = ""
    for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
    return text
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A reader for the bytes of a paste, whose end may have been lost.
struct PasteReader: Sendable {
  static let end: StaticString = "\u{1B}[201~"

  /// The maximum length of a paste in bytes.
  private let limit: Int
  private var text: ContiguousArray<UInt8> = []
  private var isTruncated = false
  /// The number of bytes of the end sequence that have arrived.
  private var matched = 0
  /// The bytes from the first one that may be a key, which are stored separately until that is known.
  private var suffix: ContiguousArray<UInt8> = []
  /// Whether a mouse report has arrived within the paste.
  private var hasReport = false
  /// The number of bytes that have arrived since the last call of ``isStillArriving()``.
  private var arrived = 0

  private static let suffixLimit = 256
  /// The limit once there is a mouse report, which exceeds what a mouse sends while a paste may be held back.
  private static let reportsLimit = 4096

  init(limit: Int) { self.limit = limit }

  var isEmpty: Bool { text.isEmpty }
  var mayContainKeys: Bool { !suffix.isEmpty }

  /// Handles a byte, and returns whether it completes the end sequence.
  mutating func take(_ byte: UInt8) -> Bool {
    arrived += 1
    if byte == Self.end.utf8Start[matched] {
      matched += 1
      guard matched == Self.end.utf8CodeUnitCount else { return false }
      keepSuffix()
      return true
    }
    // The first byte of the end sequence occurs nowhere else in it.
    for index in 0..<matched { keep(Self.end.utf8Start[index]) }
    matched = byte == 0x1B ? 1 : 0
    if matched == 0 { keep(byte) }
    return false
  }

  /// Whether the paste continues, according to the bytes that have arrived since the last call.
  ///
  /// A terminal sends a paste as a whole, without mouse reports in the middle.
  mutating func isStillArriving() -> Bool {
    defer { arrived = 0 }
    return arrived >= InputParser.slowest && !hasReport
  }

  /// Ends a paste whose end was lost, and returns the bytes that may be keys.
  mutating func cut() -> ContiguousArray<UInt8> {
    for index in 0..<matched { keep(Self.end.utf8Start[index]) }
    matched = 0
    isTruncated = true
    defer { suffix = [] }
    return suffix
  }

  /// Removes and returns the text, and whether it is incomplete.
  mutating func takeText() -> (text: String, isTruncated: Bool) {
    if isTruncated { dropHalfScalar() }
    // The memory of a large paste is released.
    defer { text = [] }
    return (Self.lines(text), isTruncated)
  }

  private mutating func keep(_ byte: UInt8) {
    guard !suffix.isEmpty || byte == 0x1B || byte == InputParser.interrupt else { return keepText(byte) }
    suffix.append(byte)
    if byte == 0x4D || byte == 0x6D, suffixEndsWithReport { hasReport = true }
    if suffix.count >= (hasReport ? Self.reportsLimit : Self.suffixLimit) { keepSuffix() }
  }

  /// Whether the suffix, which ends with M or m, ends with a mouse report: `ESC [ <` and three numbers.
  private var suffixEndsWithReport: Bool {
    var start = suffix.count - 1
    var separators = 0
    // Longer sequences are not reports.
    let first = max(3, start - 24)
    while start > first, (0x30...0x39).contains(suffix[start - 1]) || suffix[start - 1] == 0x3B {
      if suffix[start - 1] == 0x3B { separators += 1 }
      start -= 1
    }
    return separators == 2 && start >= 3 && suffix[start - 1] == 0x3C && suffix[start - 2] == 0x5B
      && suffix[start - 3] == 0x1B
  }

  private mutating func keepText(_ byte: UInt8) {
    if text.count < limit { text.append(byte) } else { isTruncated = true }
  }

  /// Appends the suffix to the text, because it does not contain keys.
  private mutating func keepSuffix() {
    for byte in suffix { keepText(byte) }
    suffix.removeAll(keepingCapacity: true)
  }

  private mutating func dropHalfScalar() {
    var end = text.count
    while end > 0, text.count - end < 3, text[end - 1] & 0xC0 == 0x80 { end -= 1 }
    guard end > 0, text[end - 1] >= 0xC0 else { return }
    let length = text[end - 1] >= 0xF0 ? 4 : text[end - 1] >= 0xE0 ? 3 : 2
    if end - 1 + length > text.count { text.removeSubrange((end - 1)...) }
  }

  /// Returns the text with LF line endings, which terminals replace with CR or CR LF.
  private static func lines(_ bytes: ContiguousArray<UInt8>) -> String {
    guard bytes.contains(0x0D) else { return String(decoding: bytes, as: UTF8.self) }
    var lines = ContiguousArray<UInt8>()
    lines.reserveCapacity(bytes.count)
    for (index, byte) in bytes.enumerated() {
      if byte == 0x0A, index > 0, bytes[index - 1] == 0x0D { continue }
      lines.append(byte == 0x0D ? 0x0A : byte)
    }
    return String(decoding: lines, as: UTF8.self)
  }
}

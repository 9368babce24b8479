// SPDX-License-Identifier: Apache-2.0

extension AgentDocument {
  /// The maximum nesting depth of lists and objects.
  static let deepest = 32

  /// Parses a document.
  ///
  /// Fails if the bytes are not exactly one document or are nested too deeply.
  ///
  /// Only 64-bit integers are supported, because no other numbers are sent. The last member with a given name wins.
  ///
  /// - Complexity: O(n) in the number of bytes.
  package init?(bytes: some Sequence<UInt8>) {
    var reader = AgentReader(Array(bytes))
    guard let value = reader.value(depth: 0), reader.isAtEnd else { return nil }
    self = value
  }
}

private struct AgentReader {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

  private mutating func skipSpace() {
    while let byte = next, [32, 9, 10, 13].contains(byte) { place += 1 }
  }

  /// Whether only whitespace is left.
  var isAtEnd: Bool {
    mutating get {
      skipSpace()
      return next == nil
    }
  }

  private mutating func take(_ byte: Character) -> Bool {
    skipSpace()
    guard next == byte.asciiValue else { return false }
    place += 1
    return true
  }

  private mutating func takeWord(_ word: StaticString) -> Bool {
    let isThere = word.withUTF8Buffer { bytes[place...].starts(with: $0) }
    if isThere { place += word.utf8CodeUnitCount }
    return isThere
  }

  mutating func value(depth: Int) -> AgentDocument? {
    guard depth <= AgentDocument.deepest else { return nil }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return object(depth)
    case UInt8(ascii: "["): return list(depth)
    case UInt8(ascii: "\""): return text().map { .text($0) }
    case UInt8(ascii: "t"): return takeWord("true") ? .bool(true) : nil
    case UInt8(ascii: "f"): return takeWord("false") ? .bool(false) : nil
    case UInt8(ascii: "n"): return takeWord("null") ? .null : nil
    default: return number()
    }
  }

  private mutating func number() -> AgentDocument? {
    let start = place
    if next == UInt8(ascii: "-") { place += 1 }
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { place += 1 }
    // A fraction or exponent fails later, because it is not allowed after a value.
    return Int64(String(decoding: bytes[start..<place], as: UTF8.self)).map { .int($0) }
  }

  private mutating func list(_ depth: Int) -> AgentDocument? {
    var values: [AgentDocument] = []
    guard take("[") else { return nil }
    if take("]") { return .list(values) }
    repeat {
      guard let value = value(depth: depth + 1) else { return nil }
      values.append(value)
    } while take(",")
    return take("]") ? .list(values) : nil
  }

  private mutating func object(_ depth: Int) -> AgentDocument? {
    var members: [String: AgentDocument] = [:]
    guard take("{") else { return nil }
    if take("}") { return .object(members) }
    repeat {
      skipSpace()
      guard let name = text(), take(":"), let value = value(depth: depth + 1) else { return nil }
      members[name] = value
    } while take(",")
    return take("}") ? .object(members) : nil
  }

  private mutating func text() -> String? {
    guard next == UInt8(ascii: "\"") else { return nil }
    place += 1
    var units: [UInt8] = []
    while let byte = next {
      place += 1
      switch byte {
      case UInt8(ascii: "\""): return String(validating: units, as: UTF8.self)
      case UInt8(ascii: "\\"): guard escape(&units) else { return nil }
      case 0..<32: return nil
      default: units.append(byte)
      }
    }
    return nil
  }

  private mutating func escape(_ units: inout [UInt8]) -> Bool {
    guard let byte = next else { return false }
    place += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(byte)
    case UInt8(ascii: "b"): units.append(8)
    case UInt8(ascii: "f"): units.append(12)
    case UInt8(ascii: "n"): units.append(10)
    case UInt8(ascii: "r"): units.append(13)
    case UInt8(ascii: "t"): units.append(9)
    case UInt8(ascii: "u"): return unicode(&units)
    default: return false
    }
    return true
  }

  private mutating func unicode(_ units: inout [UInt8]) -> Bool {
    guard let first = fourDigits() else { return false }
    if let scalar = Unicode.Scalar(first) {
      units += Array(String(Character(scalar)).utf8)
      return true
    }
    // The first half of a surrogate pair, which the second half must follow.
    guard (0xD800..<0xDC00).contains(first), next == UInt8(ascii: "\\") else { return false }
    place += 1
    guard next == UInt8(ascii: "u") else { return false }
    place += 1
    guard let second = fourDigits(), (0xDC00..<0xE000).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
    else { return false }
    units += Array(String(Character(scalar)).utf8)
    return true
  }

  private mutating func fourDigits() -> UInt16? {
    guard place + 4 <= bytes.count else { return nil }
    let digits = bytes[place..<place + 4]
    guard digits.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }) else { return nil }
    place += 4
    return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
  }
}

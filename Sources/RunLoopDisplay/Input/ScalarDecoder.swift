// SPDX-License-Identifier: Apache-2.0

/// A decoder that assembles a UTF-8 scalar one byte at a time.
struct ScalarDecoder: Sendable {
  enum Step {
    case more
    case scalar(Unicode.Scalar)
    /// The preceding bytes are not a valid scalar.
    case malformed
  }

  private var value: UInt32 = 0
  private var missing = 0
  /// The valid values of the next byte.
  private var allowed: ClosedRange<UInt8> = 0x80...0xBF

  /// Handles the first byte, and returns false if no scalar begins with it.
  mutating func begin(_ byte: UInt8) -> Bool {
    allowed = 0x80...0xBF
    switch byte {
    case 0xC2...0xDF:
      value = UInt32(byte & 0x1F)
      missing = 1
    case 0xE0...0xEF:
      value = UInt32(byte & 0x0F)
      missing = 2
      if byte == 0xE0 { allowed = 0xA0...0xBF }
      if byte == 0xED { allowed = 0x80...0x9F }
    case 0xF0...0xF4:
      value = UInt32(byte & 0x07)
      missing = 3
      if byte == 0xF0 { allowed = 0x90...0xBF }
      if byte == 0xF4 { allowed = 0x80...0x8F }
    default: return false
    }
    return true
  }

  /// Handles a further byte.
  mutating func next(_ byte: UInt8) -> Step {
    guard allowed.contains(byte) else { return .malformed }
    allowed = 0x80...0xBF
    value = value << 6 | UInt32(byte & 0x3F)
    missing -= 1
    guard missing == 0 else { return .more }
    return Unicode.Scalar(value).map(Step.scalar) ?? .malformed
  }
}

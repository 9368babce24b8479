// SPDX-License-Identifier: Apache-2.0

enum TLSPins {
  static func digests(_ pins: [String]) throws(TLSError) -> [UInt8] {
    var digests: [UInt8] = []
    for pin in pins {
      guard let digest = digest(pin) else { throw TLSError(.badPin(pin)) }
      digests += digest
    }
    return digests
  }

  /// Decodes the 32 bytes of a base64 text, which may be prefixed with "sha256//".
  static func digest(_ pin: String) -> [UInt8]? {
    let text = pin.utf8.starts(with: "sha256//".utf8) ? pin.utf8.dropFirst(8) : pin.utf8[...]
    // The encoding of 32 bytes has 43 digits and one padding character.
    guard text.count == 44, text.last == UInt8(ascii: "=") else { return nil }
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for character in text.dropLast() {
      guard let digit = digit(character) else { return nil }
      bits = bits << 6 | UInt32(digit)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    // The unused bits must be zero, so that each digest has only one encoding.
    guard bits & ((1 << UInt32(count)) - 1) == 0 else { return nil }
    return bytes
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}

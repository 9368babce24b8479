// SPDX-License-Identifier: Apache-2.0

// Control strings, with which terminals reply, and the keys that begin like one.
extension InputParser {
  mutating func takeString(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    arrived += 1
    if state == .stringEscape {
      if byte == 0x5C, !text.isEmpty || hasKeyboard { return endString(emit) }
      // Another sequence begins, and the string was not terminated.
      breakString(emit)
      state = .escape
      return takeEscape(byte, emit)
    }
    switch byte {
    case 0x1B: state = .stringEscape
    case 0x07: endString(emit)
    // A key, so there was no string or it was not terminated.
    case ..<0x20, 0x7F:
      breakString(emit)
      take(byte, emit)
    case _ where !canFollow(byte):
      endAsKeys(emit)
      take(byte, emit)
    default: if text.count < Self.stringLimit { text.append(byte) }
    }
  }

  /// Returns whether terminals send such a string with another byte appended.
  ///
  /// If not, it was typed: a letter with Alt, followed by other keys.
  private func canFollow(_ byte: UInt8) -> Bool {
    guard !hasKeyboard, text.count < Self.stringLimit else { return true }
    let isDigit = (0x30...0x39).contains(byte)
    switch (stringKind, text.first) {
    // A number, a semicolon, and further text.
    case (0x5D, nil): return isDigit
    case (0x5D, _): return isDigit || byte == 0x3B || text.contains(0x3B)
    // `>|`, `!|`, or a number and a symbol.
    case (0x50, nil): return isDigit || byte == 0x3E || byte == 0x21
    case (0x50, 0x3E), (0x50, 0x21): return text.count > 1 || byte == 0x7C
    case (0x50, _): return !text.allSatisfy { (0x30...0x3B).contains($0) } || byte < 0x40 || byte == 0x7C
    default: return !text.isEmpty || byte == 0x47
    }
  }

  /// Handles a string that was not terminated, which is treated as keys if it is short and could have been typed.
  mutating func breakString(_ emit: (ParsedInput) -> Void) {
    if hasKeyboard || text.count >= Self.stringLimit { finish() } else { endAsKeys(emit) }
  }

  /// Handles the string as a letter with Alt, followed by other keys.
  mutating func endAsKeys(_ emit: (ParsedInput) -> Void) {
    let typed = text
    if hasAlt { key(.escape, [], emit) }
    finish()
    character(UInt32(stringKind), [.alt], emit)
    for byte in typed { take(byte, emit) }
  }

  private mutating func endString(_ emit: (ParsedInput) -> Void) {
    if hasAlt { key(.escape, [], emit) }
    if stringKind == 0x50, text.count > 2, text[0] == 0x3E, text[1] == 0x7C {
      emit(.answer(.version(String(decoding: text.dropFirst(2), as: UTF8.self))))
    } else {
      emit(.answer(.other))
    }
    finish()
  }
}

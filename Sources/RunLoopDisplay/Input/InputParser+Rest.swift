// SPDX-License-Identifier: Apache-2.0

// Sequences that arrive in two parts, the first of which was reported as a key because of the pause after it.
extension InputParser {
  /// Handles a byte after the beginning of a sequence that was reported as a key because nothing followed it in time.
  ///
  /// The byte is taken for the rest of the sequence if no keys produce it, or if it arrives faster than users type.
  mutating func takeLate(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch (state, byte) {
    case (.late(0), 0x5B), (.late(0), 0x50), (.late(0x5B), 0x30...0x39):
      if case .late(let first) = state { state = .rest(first) }
      text.removeAll(keepingCapacity: true)
      text.append(byte)
    // `ESC [ <`, `ESC [ ?` and `ESC P >` begin mouse reports and replies.
    case (.late(0x5B), 0x3C), (.late(0x5B), 0x3F), (.late(0x50), 0x3E), (.rest(0), 0x3C), (.rest(0), 0x3E),
      (.rest(0), 0x3F):
      var start = text
      if case .late(let first) = state { start = [first] }
      guard start == [byte == 0x3E ? 0x50 : 0x5B] else { return typeRest(byte, emit) }
      begin(start[0], emit)
      take(byte, emit)
    case (.rest(let first), 0x30...0x39), (.rest(let first), 0x3B):
      guard text[0] != 0x50, text.count < Self.stringLimit else { return typeRest(byte, emit) }
      state = .rest(first)
      text.append(byte)
    case (.rest(let first), 0x40...0x7E):
      let isKnown = text.count > 1 || first != 0 || Self.cursorKey(byte) != nil || [0x49, 0x4F, 0x5A].contains(byte)
      guard text[0] != 0x50, isKnown else { return typeRest(byte, emit) }
      let rest = text
      finish()
      if first == 0 { state = .escape } else { begin(first, emit) }
      for byte in rest { take(byte, emit) }
      take(byte, emit)
    case (.rest, _): typeRest(byte, emit)
    default: restart(byte, emit)
    }
  }

  /// Handles bytes as typed that were held back as the possible rest of a sequence.
  mutating func typeRest(_ emit: (ParsedInput) -> Void) {
    let rest = text
    finish()
    for byte in rest { take(byte, emit) }
  }

  private mutating func typeRest(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    typeRest(emit)
    take(byte, emit)
  }
}

// SPDX-License-Identifier: Apache-2.0

/// Turns the bytes of a terminal into events.
///
/// A value without isolation: the same bytes give the same events, however they are split, if it is not flushed in
/// between. Whatever they are, it keeps a bounded number of them.
///
/// CAN and SUB end a sequence, which is forgotten. Another control character, or one that cannot be there, ends it too,
/// and is a key. Within a paste only its end is looked for.
package struct InputParser: Sendable {
  /// Where in a sequence the parser is.
  enum State: Hashable, Sendable {
    case ground
    /// After ESC.
    case escape
    /// After ESC ESC.
    case escapeEscape
    /// After ESC O, with the modifiers that old terminals put in between.
    case ss3
    /// After ESC [.
    case csi
    /// After ESC [ [, the function keys of the Linux console.
    case console
    /// After an ESC that was a key, though the terminal has been asked: an answer may go on here.
    case late
    /// After what could go on with an answer, of which nothing has been a key; or it has.
    case lateStart(UInt8, isKey: Bool)
    /// In the three bytes of a mouse report of the old kind.
    case mouse
    /// In a string, up to ST.
    case string
    /// After ESC in a string.
    case stringEscape
    case paste
    /// After the first bytes of a scalar.
    case utf8
  }

  /// The longest paste, in bytes.
  package let pasteLimit: Int

  var state = State.ground
  /// Whether the sequence came after a second ESC.
  var hasAlt = false
  var parameters = SequenceParameters()
  /// The name that begins a string's kind: P for DCS.
  private var stringKind: UInt8 = 0
  var text: ContiguousArray<UInt8> = []
  private var isTruncated = false
  /// How many bytes of the paste's end have arrived.
  private var matched = 0
  private var decoder = ScalarDecoder()
  private var mouseBytes: (UInt8, UInt8, UInt8) = (0, 0, 0)
  private var mouseCount = 0
  /// The button that a mouse of the old kind holds, which does not say what it releases.
  var heldButton: MouseEvent.Button?

  /// How many bytes of a string are kept.
  static let stringLimit = 64
  private static let pasteEnd: StaticString = "\u{1B}[201~"

  package init(pasteLimit: Int = 1 << 20) { self.pasteLimit = pasteLimit }

  /// Whether what has come is a key if nothing follows soon: ESC alone, or a key with Alt that begins sequences.
  package var awaitsMore: Bool {
    switch state {
    case .escape, .escapeEscape: true
    case .csi, .ss3: parameters.isUntouched
    case .string: text.isEmpty
    case .lateStart(_, let isKey): !isKey
    default: false
    }
  }

  /// Nothing has followed: what has come is a key.
  ///
  /// - Parameter awaitsAnswers: Whether it may have been the beginning of an answer, whose end is no key then either.
  package mutating func flush(awaitsAnswers: Bool = false, _ emit: (ParsedInput) -> Void) {
    guard awaitsMore else { return }
    if hasAlt { key(.escape, [], emit) }
    let before = state
    defer {
      if awaitsAnswers {
        switch before {
        case .escape: state = .late
        case .csi: state = .lateStart(0x5B, isKey: true)
        case .string where stringKind == 0x50: state = .lateStart(0x50, isKey: true)
        default: break
        }
      }
    }
    switch state {
    case .escape: key(.escape, [], emit)
    case .lateStart(let byte, _): character(UInt32(byte), [], emit)
    case .escapeEscape: key(.escape, [.alt], emit)
    case .csi: key(.character("["), [.alt], emit)
    case .ss3: key(.character("O"), [.alt], emit)
    default: character(UInt32(stringKind), [.alt], emit)
    }
    finish()
  }

  /// Parses bytes.
  ///
  /// - Complexity: O(n).
  package mutating func parse(_ bytes: UnsafeRawBufferPointer, _ emit: (ParsedInput) -> Void) {
    for byte in bytes { take(byte, emit) }
  }

  private mutating func take(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch state {
    case .paste: return takePaste(byte, emit)
    case .mouse: return takeMouse(byte, emit)
    case .utf8: return takeScalar(byte, emit)
    case .ground: return takeGround(byte, [], emit)
    case .escape: return takeEscape(byte, emit)
    case .escapeEscape: return takeEscapeEscape(byte, emit)
    case .late, .lateStart: return takeLate(byte, emit)
    default: break
    }
    // CAN and SUB end any sequence.
    if byte == 0x18 || byte == 0x1A { return finish() }
    switch state {
    case .csi: takeSequence(byte, emit)
    case .ss3: takeSS3(byte, emit)
    case .console: takeConsole(byte, emit)
    case .string, .stringEscape: takeString(byte, emit)
    default: break
    }
  }

  /// Ends a sequence.
  mutating func finish() {
    state = .ground
    hasAlt = false
  }

  /// Ends a sequence that cannot go on so, and takes the byte by itself.
  mutating func restart(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    finish()
    takeGround(byte, [], emit)
  }

  func key(_ key: KeyEvent.Key, _ modifiers: KeyModifiers, _ emit: (ParsedInput) -> Void) {
    emit(.event(.key(KeyEvent(key, modifiers: modifiers))))
  }

  // MARK: Characters

  private mutating func takeGround(_ byte: UInt8, _ modifiers: KeyModifiers, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x1B:
      state = .escape
      return
    case 0x0D, 0x0A: key(.enter, modifiers, emit)
    case 0x09: key(.tab, modifiers, emit)
    case 0x7F, 0x08: key(.backspace, modifiers, emit)
    case 0x00: key(.character(" "), modifiers.union(.control), emit)
    case 0x01...0x1A: character(UInt32(byte) + 0x60, modifiers.union(.control), emit)
    case 0x1C...0x1F: character(UInt32(byte) + 0x40, modifiers.union(.control), emit)
    case 0x20...0x7E: character(UInt32(byte), modifiers, emit)
    default:
      hasAlt = modifiers.contains(.alt)
      if decoder.begin(byte) {
        state = .utf8
      } else {
        character(0xFFFD, modifiers, emit)
        finish()
      }
      return
    }
    finish()
  }

  private func character(_ value: UInt32, _ modifiers: KeyModifiers, _ emit: (ParsedInput) -> Void) {
    key(.character(Character(Unicode.Scalar(value) ?? "\u{FFFD}")), modifiers, emit)
  }

  private mutating func takeScalar(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    let modifiers: KeyModifiers = hasAlt ? [.alt] : []
    switch decoder.next(byte) {
    case .more: break
    case .scalar(let scalar):
      character(scalar.value, modifiers, emit)
      finish()
    case .malformed:
      character(0xFFFD, modifiers, emit)
      restart(byte, emit)
    }
  }

  // MARK: Beginnings

  private mutating func takeEscape(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x1B: state = .escapeEscape
    case 0x18, 0x1A: finish()
    default: begin(byte, emit)
    }
  }

  private mutating func takeEscapeEscape(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x1B: key(.escape, [], emit)
    case 0x18, 0x1A:
      key(.escape, [], emit)
      finish()
    case 0x5B, 0x4F:
      hasAlt = true
      begin(byte, emit)
    default:
      key(.escape, [], emit)
      begin(byte, emit)
    }
  }

  /// A byte after what was a key, because nothing followed it for so long.
  private mutating func takeLate(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch (state, byte) {
    case (.late, 0x5B), (.late, 0x50): state = .lateStart(byte, isKey: false)
    // No key that follows looks like that: `ESC [ ?` and `ESC P >` begin answers.
    case (.lateStart(0x5B, _), 0x3F), (.lateStart(0x50, _), 0x3E):
      begin(byte == 0x3F ? 0x5B : 0x50, emit)
      take(byte, emit)
    case (.lateStart(let first, isKey: false), _):
      character(UInt32(first), [], emit)
      restart(byte, emit)
    default: restart(byte, emit)
    }
  }

  private mutating func begin(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    parameters = SequenceParameters()
    switch byte {
    case 0x5B: state = .csi
    case 0x4F: state = .ss3
    // DCS, OSC, PM and APC. SOS is left out: no terminal sends it, and it is Alt with X.
    case 0x50, 0x5D, 0x5E, 0x5F:
      state = .string
      stringKind = byte
      text.removeAll(keepingCapacity: true)
    default: takeGround(byte, [.alt], emit)
    }
  }

  // MARK: Strings

  private mutating func takeString(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    if state == .stringEscape {
      if byte == 0x5C { return endString(emit) }
      // Another sequence begins; the string has no end.
      state = .escape
      return takeEscape(byte, emit)
    }
    switch byte {
    case 0x1B: state = .stringEscape
    case 0x07: endString(emit)
    // A key: the string was none, or has no end.
    case ..<0x20, 0x7F: restart(byte, emit)
    default: if text.count < Self.stringLimit { text.append(byte) }
    }
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

  // MARK: Pastes

  mutating func beginPaste() {
    state = .paste
    text.removeAll(keepingCapacity: true)
    matched = 0
    isTruncated = false
  }

  private mutating func takePaste(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    if byte == Self.pasteEnd.utf8Start[matched] {
      matched += 1
      if matched == Self.pasteEnd.utf8CodeUnitCount { endPaste(emit) }
      return
    }
    // The beginning of the end occurs nowhere else in it.
    for index in 0..<matched { keep(Self.pasteEnd.utf8Start[index]) }
    matched = byte == 0x1B ? 1 : 0
    if matched == 0 { keep(byte) }
  }

  private mutating func keep(_ byte: UInt8) {
    if text.count < pasteLimit { text.append(byte) } else { isTruncated = true }
  }

  private mutating func endPaste(_ emit: (ParsedInput) -> Void) {
    if isTruncated {
      // Not half a scalar.
      var end = text.count
      while end > 0, text.count - end < 3, text[end - 1] & 0xC0 == 0x80 { end -= 1 }
      if end > 0, text[end - 1] >= 0xC0 {
        let length = text[end - 1] >= 0xF0 ? 4 : text[end - 1] >= 0xE0 ? 3 : 2
        if end - 1 + length > text.count { text.removeSubrange((end - 1)...) }
      }
    }
    emit(.event(.paste(Self.lines(text), isTruncated: isTruncated)))
    // A large paste leaves no memory behind.
    text = []
    finish()
  }

  /// The text with the line ends that terminals make of it, CR or CR LF, as LF.
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

  // MARK: Mice of the old kind

  mutating func beginMouse() {
    state = .mouse
    mouseCount = 0
  }

  private mutating func takeMouse(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    // No report has a control character.
    guard byte >= 0x20 else {
      return byte == 0x18 || byte == 0x1A ? finish() : restart(byte, emit)
    }
    switch mouseCount {
    case 0: mouseBytes.0 = byte
    case 1: mouseBytes.1 = byte
    default:
      mouseBytes.2 = byte
      mouse(
        Int(mouseBytes.0) - 32, Int(mouseBytes.1) - 32, Int(mouseBytes.2) - 32, isRelease: nil, emit)
      return finish()
    }
    mouseCount += 1
  }
}

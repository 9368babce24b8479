// SPDX-License-Identifier: Apache-2.0

/// A parser that turns the bytes of a terminal into events.
///
/// This value is not isolated. The same bytes result in the same events, however they are split, unless it is flushed
/// in between. It stores a bounded number of bytes, whatever they are.
///
/// CAN and SUB end a sequence, which is discarded. Other control characters and invalid characters also end a
/// sequence, and are handled as keys. Within a paste, the parser only looks for the paste's end, and for mouse
/// reports, which show that the end was lost.
///
/// Input is held back for a limited time: ``wait`` determines how long, and ``flush(awaitsAnswers:_:)`` decides how it
/// is handled. A sequence whose end was lost therefore delays Ctrl-C by less than a second.
package struct InputParser: Sendable {
  /// The input that the parser is waiting for.
  package enum Wait: Hashable, Sendable {
    /// A byte that shows whether a key begins a sequence. The time is measured from the last byte.
    case more
    /// The end of a sequence, identified by a number. The time is measured from the beginning of the sequence.
    case end(Int)
  }

  /// The position of the parser in a sequence.
  enum State: Hashable, Sendable {
    case ground
    /// After ESC.
    case escape
    /// After ESC ESC, without the keyboard protocol.
    case escapeEscape
    /// After ESC O, and any modifiers that old terminals insert.
    case ss3
    /// After ESC [.
    case csi
    /// After ESC [ [, which begins function keys of the Linux console.
    case console
    /// After the beginning of a sequence that was reported as keys or dropped: ESC and the byte, or ESC alone for 0.
    case late(UInt8)
    /// In the possible rest of such a sequence.
    case rest(UInt8)
    /// In the three bytes of a legacy mouse report.
    case mouse
    /// In a string, which ends with ST.
    case string
    /// After ESC in a string.
    case stringEscape
    case paste
    /// After the first bytes of a UTF-8 scalar.
    case utf8
  }

  /// The maximum length of a paste in bytes.
  package let pasteLimit: Int

  var state = State.ground {
    didSet { if oldValue == .ground { holds &+= 1 } }
  }
  /// The number of times that input was held back.
  private var holds = 0
  /// Whether the terminal has reported that it uses the keyboard protocol, in which a lone ESC is not a key.
  var hasKeyboard = false
  /// Whether the sequence began after a second ESC.
  var hasAlt = false
  var parameters = SequenceParameters()
  /// The byte that identifies the kind of string, such as P for DCS.
  var stringKind: UInt8 = 0
  var text: ContiguousArray<UInt8> = []
  private var paste = PasteReader(limit: 0)
  /// The number of bytes of a string that arrived since its time started.
  var arrived = 0
  /// Whether the last paste was cut off, so that more of it may follow.
  private var isPasteCut = false
  /// Whether the user has typed since then, so that only the paste's end shows that more of it follows.
  private var hasTypedSinceCut = false
  /// Whether the last bytes were the beginning of a sequence with parameters, which was dropped.
  private var isSequenceCut = false
  private var decoder = ScalarDecoder()
  var mouseBytes: (UInt8, UInt8, UInt8) = (0, 0, 0)
  var mouseCount = 0
  /// The button held down in legacy mouse reports, which do not identify the released button.
  var heldButton: MouseEvent.Button?

  /// The number of bytes of a string that are kept.
  static let stringLimit = 64
  /// The number of bytes below which a paste or string has lost its end, once its time has elapsed.
  static let slowest = 128
  /// Ctrl-C, which is never treated as part of held-back input.
  static let interrupt: UInt8 = 0x03

  package init(pasteLimit: Int = 1 << 20) { self.pasteLimit = pasteLimit }

  /// The input that the parser is waiting for, or nil if no input is held back.
  package var wait: Wait? {
    switch state {
    case .ground, .late: nil
    case .rest: .more
    case .escape: hasKeyboard ? .end(holds) : .more
    case .escapeEscape: .more
    case .csi, .ss3: parameters.isUntouched && !hasKeyboard ? .more : .end(holds)
    case .string: text.isEmpty && !hasKeyboard ? .more : .end(holds)
    case .console, .mouse, .stringEscape, .paste, .utf8: .end(holds)
    }
  }

  /// Reports or drops held-back input, because the time of ``wait`` has elapsed.
  ///
  /// - Parameter awaitsAnswers: Whether the input may be the beginning of a reply, so that the rest of it is not a key.
  package mutating func flush(awaitsAnswers: Bool = false, _ emit: (ParsedInput) -> Void) {
    switch state {
    case .ground, .late: break
    case .rest(let first):
      let start = text[0]
      let isShort = first == 0 && text.count == 1 && (start == 0x5B || awaitsAnswers)
      typeRest(emit)
      // The sequence can continue after a further pause.
      if isShort { state = .late(start) }
    case .escape, .escapeEscape, .csi, .ss3, .console: flushSequence(awaitsAnswers, emit)
    case .mouse: finish()
    case .utf8:
      character(0xFFFD, hasAlt ? [.alt] : [], emit)
      finish()
    case .string where text.isEmpty && !hasKeyboard:
      let kind = stringKind
      endAsKeys(emit)
      if awaitsAnswers, kind == 0x50 { state = .late(kind) }
    case .string:
      holds &+= 1
      let isStillArriving = arrived >= Self.slowest
      arrived = 0
      if !isStillArriving { breakString(emit) }
    case .paste:
      holds &+= 1
      if !paste.isStillArriving() { cutPaste(emit) }
    case .stringEscape:
      breakString(emit)
      if !hasKeyboard { key(.escape, [], emit) }
    }
  }

  private mutating func flushSequence(_ awaitsAnswers: Bool, _ emit: (ParsedInput) -> Void) {
    let before = state
    let (hasAlt, isUntouched) = (hasAlt, parameters.isUntouched)
    finish()
    isSequenceCut = before == .csi && !isUntouched
    guard !hasKeyboard else {
      if before == .escape { state = .late(0) }
      if before == .csi, isUntouched { state = .late(0x5B) }
      return
    }
    if hasAlt { key(.escape, [], emit) }
    switch before {
    case .escape:
      key(.escape, [], emit)
      state = .late(0)
    case .escapeEscape: key(.escape, [.alt], emit)
    case .csi where isUntouched:
      key(.character("["), [.alt], emit)
      state = .late(0x5B)
    case .ss3 where isUntouched: key(.character("O"), [.alt], emit)
    case .console:
      key(.character("["), [.alt], emit)
      key(.character("["), [], emit)
    default: break
    }
  }

  /// Parses bytes.
  ///
  /// - Complexity: O(n), where n is the number of bytes.
  package mutating func parse(_ bytes: UnsafeRawBufferPointer, _ emit: (ParsedInput) -> Void) {
    if isPasteCut, state == .ground {
      if continuesPaste(bytes) { beginPaste() } else if bytes.count == 1, bytes[0] >= 0x20 { hasTypedSinceCut = true }
    }
    if isSequenceCut, !bytes.isEmpty {
      isSequenceCut = false
      if state == .ground, parameters.continues(with: bytes) { state = .csi }
    }
    for byte in bytes { take(byte, emit) }
  }

  mutating func take(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch state {
    case .paste:
      if paste.take(byte) { endPaste(emit) }
      return
    case .mouse: return takeMouse(byte, emit)
    case .utf8: return takeScalar(byte, emit)
    case .ground: return takeGround(byte, [], emit)
    case .escape: return takeEscape(byte, emit)
    case .escapeEscape: return takeEscapeEscape(byte, emit)
    case .late, .rest: return takeLate(byte, emit)
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

  /// Ends a sequence in which a byte is invalid, and handles the byte separately.
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

  func character(_ value: UInt32, _ modifiers: KeyModifiers, _ emit: (ParsedInput) -> Void) {
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

  mutating func takeEscape(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    // With the keyboard protocol, the first ESC is not a key, but the beginning of a sequence whose rest was lost.
    case 0x1B: if hasKeyboard { restart(byte, emit) } else { state = .escapeEscape }
    case 0x18, 0x1A: finish()
    case Self.interrupt:
      if !hasKeyboard { key(.escape, [], emit) }
      restart(byte, emit)
    default: begin(byte, emit)
    }
  }

  private mutating func takeEscapeEscape(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x1B: key(.escape, [], emit)
    case 0x18, 0x1A:
      key(.escape, [], emit)
      finish()
    case Self.interrupt:
      key(.escape, [], emit)
      takeEscape(byte, emit)
    case 0x5B, 0x4F:
      hasAlt = true
      begin(byte, emit)
    default:
      key(.escape, [], emit)
      begin(byte, emit)
    }
  }

  mutating func begin(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    parameters = SequenceParameters()
    switch byte {
    case 0x5B: state = .csi
    case 0x4F: state = .ss3
    // DCS, OSC and APC. Terminals do not send SOS or PM, so these are Alt-X and Alt-^.
    case 0x50, 0x5D, 0x5F:
      state = .string
      stringKind = byte
      arrived = 0
      text.removeAll(keepingCapacity: true)
    // With the keyboard protocol, keys with Alt have codes.
    default: takeGround(byte, hasKeyboard ? [] : [.alt], emit)
    }
  }

  // MARK: Pastes

  mutating func beginPaste() {
    state = .paste
    paste = PasteReader(limit: pasteLimit)
    isPasteCut = false
  }

  /// Ends a paste whose end was lost, and handles the bytes that may be keys as keys.
  private mutating func cutPaste(_ emit: (ParsedInput) -> Void) {
    let keys = paste.cut()
    if paste.isEmpty { finish() } else { endPaste(emit) }
    isPasteCut = true
    hasTypedSinceCut = false
    for byte in keys { take(byte, emit) }
    // A paste that began within this one has been held back for as long, and its keys must not wait again.
    if state == .paste, paste.mayContainKeys { cutPaste(emit) }
  }

  /// Called when the end of a paste arrives after it was cut off.
  mutating func pasteHasEnded() { isPasteCut = false }

  /// Whether the bytes of a read continue a paste that was cut off.
  ///
  /// They do if they lead up to the paste's end or its first bytes. Until a single key has been typed, they also do if
  /// they are more than can be typed at once, or have a line break among other bytes, because a paste must never act as
  /// Enter.
  private func continuesPaste(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let place = bytes.firstIndex(where: { $0 == 0x1B || $0 == Self.interrupt }) else {
      guard !hasTypedSinceCut else { return false }
      return bytes.count >= Self.stringLimit || bytes.count > 1 && bytes.contains { $0 == 0x0D || $0 == 0x0A }
    }
    let end = UnsafeRawBufferPointer(start: PasteReader.end.utf8Start, count: PasteReader.end.utf8CodeUnitCount)
    return place > 0 && (bytes[place...].starts(with: end) || end.starts(with: bytes[place...]))
  }

  private mutating func endPaste(_ emit: (ParsedInput) -> Void) {
    let (text, isTruncated) = paste.takeText()
    emit(.event(.paste(text, isTruncated: isTruncated)))
    finish()
  }
}

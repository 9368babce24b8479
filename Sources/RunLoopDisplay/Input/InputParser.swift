// SPDX-License-Identifier: Apache-2.0

/// Turns the bytes of a terminal into events.
///
/// A value without isolation: the same bytes give the same events, however they are split, if it is not flushed in
/// between. Whatever they are, it keeps a bounded number of them.
///
/// CAN and SUB end a sequence, which is forgotten. Another control character, or one that cannot be there, ends it too,
/// and is a key. Within a paste only its end is looked for, and reports of the mouse, which show that the end was lost.
///
/// Input is held back for a bounded time: ``wait`` says for how long, and ``flush(awaitsAnswers:_:)`` decides what it
/// was. So a sequence whose end was lost delays Ctrl-C by less than a second, however often it is pressed.
package struct InputParser: Sendable {
  /// What the parser waits for.
  package enum Wait: Hashable, Sendable {
    /// A byte that shows whether a key is the beginning of a sequence: the time counts from the last byte.
    case more
    /// The end of a sequence, the time for which counts from its beginning; the number differs for each.
    case end(Int)
  }

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
    /// After the beginning of a sequence that was reported as a key: ESC if the byte is 0, otherwise ESC and the byte.
    case late(UInt8)
    /// In what may be the rest of such a sequence.
    case rest(UInt8)
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

  var state = State.ground {
    didSet { if oldValue == .ground { holds &+= 1 } }
  }
  /// How often input was held back.
  private var holds = 0
  /// Whether keys are sent by the keyboard protocol, as the terminal has said: ESC alone is no key then.
  var hasKeyboard = false
  /// Whether the sequence came after a second ESC.
  var hasAlt = false
  var parameters = SequenceParameters()
  /// The name that begins a string's kind: P for DCS.
  private var stringKind: UInt8 = 0
  var text: ContiguousArray<UInt8> = []
  private var isTruncated = false
  /// How many bytes of the paste's end have arrived.
  private var matched = 0
  /// The end of a paste from the first byte on that may be a key; kept apart until that is known.
  private var suffix: ContiguousArray<UInt8> = []
  /// Whether a report of the mouse has arrived in the paste.
  private var hasReport = false
  /// How many bytes of a paste or a string have arrived since the time for it began.
  private var arrived = 0
  /// Whether the last paste was cut off, so that more of it may follow.
  private var isPasteCut = false
  private var decoder = ScalarDecoder()
  private var mouseBytes: (UInt8, UInt8, UInt8) = (0, 0, 0)
  private var mouseCount = 0
  /// The button that a mouse of the old kind holds, which does not say what it releases.
  var heldButton: MouseEvent.Button?

  /// How many bytes of a string are kept.
  static let stringLimit = 64
  private static let suffixLimit = 256
  /// The same once a report of the mouse is in it: more than a mouse sends while a paste may be held back.
  private static let reportsLimit = 4096
  /// A paste or a string that brings fewer bytes until its time is over has lost its end: what arrives is typed.
  private static let slowest = 128
  private static let pasteEnd: StaticString = "\u{1B}[201~"

  package init(pasteLimit: Int = 1 << 20) { self.pasteLimit = pasteLimit }

  /// What the parser waits for; nil if it holds nothing back.
  package var wait: Wait? {
    switch state {
    case .ground, .late: nil
    case .rest: .more
    case .escape, .escapeEscape: hasKeyboard ? .end(holds) : .more
    case .csi, .ss3: parameters.isUntouched && !hasKeyboard ? .more : .end(holds)
    case .string: text.isEmpty && !hasKeyboard ? .more : .end(holds)
    case .console, .mouse, .stringEscape, .paste, .utf8: .end(holds)
    }
  }

  /// The time of ``wait`` is over: what was held back is reported as what it was, or dropped as a part of something.
  ///
  /// - Parameter awaitsAnswers: Whether it may have been the beginning of an answer, whose end is no key then either.
  package mutating func flush(awaitsAnswers: Bool = false, _ emit: (ParsedInput) -> Void) {
    switch state {
    case .ground, .late: break
    case .rest: typeRest(emit)
    case .escape, .escapeEscape, .csi, .ss3, .console: flushSequence(awaitsAnswers, emit)
    case .mouse: finish()
    case .utf8:
      character(0xFFFD, hasAlt ? [.alt] : [], emit)
      finish()
    case .string where text.isEmpty && !hasKeyboard:
      let kind = stringKind
      endAsKeys(emit)
      if awaitsAnswers, kind == 0x50 { state = .late(kind) }
    case .string, .paste:
      holds &+= 1
      // A terminal sends a paste as a whole, and no report of the mouse in the middle of it.
      let isStillArriving = arrived >= Self.slowest && !(state == .paste && hasReport)
      arrived = 0
      if isStillArriving { return }
      if state == .paste { cutPaste(emit) } else { breakString(emit) }
    case .stringEscape:
      breakString(emit)
      if !hasKeyboard { key(.escape, [], emit) }
    }
  }

  private mutating func flushSequence(_ awaitsAnswers: Bool, _ emit: (ParsedInput) -> Void) {
    let before = state
    let (hasAlt, isUntouched) = (hasAlt, parameters.isUntouched)
    finish()
    guard !hasKeyboard else { return }
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
  /// - Complexity: O(n).
  package mutating func parse(_ bytes: UnsafeRawBufferPointer, _ emit: (ParsedInput) -> Void) {
    if isPasteCut, state == .ground, continuesPaste(bytes) { beginPaste() }
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
    case Self.interrupt:
      if !hasKeyboard { key(.escape, [], emit) }
      restart(byte, emit)
    default: begin(byte, emit)
    }
  }

  /// Ctrl-C, which is never taken for a part of something that was held back.
  private static let interrupt: UInt8 = 0x03

  private mutating func takeEscapeEscape(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x1B: key(.escape, [], emit)
    case 0x18, 0x1A:
      key(.escape, [], emit)
      finish()
    case Self.interrupt:
      if !hasKeyboard { key(.escape, [], emit) }
      takeEscape(byte, emit)
    case 0x5B, 0x4F:
      hasAlt = true
      begin(byte, emit)
    default:
      key(.escape, [], emit)
      begin(byte, emit)
    }
  }

  /// A byte after the beginning of a sequence that was reported as a key, as nothing followed it in time.
  ///
  /// What follows is the rest of the sequence if no keys look like that, or it arrives faster than it can be typed.
  private mutating func takeLate(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch (state, byte) {
    case (.late(0), 0x5B), (.late(0), 0x50), (.late(0x5B), 0x30...0x39):
      if case .late(let first) = state { state = .rest(first) }
      text.removeAll(keepingCapacity: true)
      text.append(byte)
    // `ESC [ <`, `ESC [ ?` and `ESC P >` begin reports of the mouse and answers.
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

  /// What was held back as the rest of a sequence was typed.
  private mutating func typeRest(_ emit: (ParsedInput) -> Void) {
    let rest = text
    finish()
    for byte in rest { take(byte, emit) }
  }

  private mutating func typeRest(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    typeRest(emit)
    take(byte, emit)
  }

  private mutating func begin(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    parameters = SequenceParameters()
    switch byte {
    case 0x5B: state = .csi
    case 0x4F: state = .ss3
    // DCS, OSC and APC. No terminal sends SOS or PM: they are Alt with X and with ^.
    case 0x50, 0x5D, 0x5F:
      state = .string
      stringKind = byte
      arrived = 0
      text.removeAll(keepingCapacity: true)
    default: takeGround(byte, [.alt], emit)
    }
  }

  // MARK: Strings

  private mutating func takeString(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    arrived += 1
    if state == .stringEscape {
      if byte == 0x5C, !text.isEmpty || hasKeyboard { return endString(emit) }
      // Another sequence begins; the string has no end.
      breakString(emit)
      state = .escape
      return takeEscape(byte, emit)
    }
    switch byte {
    case 0x1B: state = .stringEscape
    case 0x07: endString(emit)
    // A key: the string was none, or has no end.
    case ..<0x20, 0x7F:
      breakString(emit)
      take(byte, emit)
    case _ where !canFollow(byte):
      endAsKeys(emit)
      take(byte, emit)
    default: if text.count < Self.stringLimit { text.append(byte) }
    }
  }

  /// Whether the string with another byte is one that terminals send; if not, it was typed: a letter with Alt, and
  /// others after it.
  private func canFollow(_ byte: UInt8) -> Bool {
    guard !hasKeyboard, text.count < Self.stringLimit else { return true }
    let isDigit = (0x30...0x39).contains(byte)
    switch (stringKind, text.first) {
    // A number and what follows a semicolon.
    case (0x5D, nil): return isDigit
    case (0x5D, _): return isDigit || byte == 0x3B || text.contains(0x3B)
    // `>|`, `!|`, or a number and a sign.
    case (0x50, nil): return isDigit || byte == 0x3E || byte == 0x21
    case (0x50, 0x3E), (0x50, 0x21): return text.count > 1 || byte == 0x7C
    case (0x50, _): return !text.allSatisfy { (0x30...0x3B).contains($0) } || byte < 0x40 || byte == 0x7C
    default: return !text.isEmpty || byte == 0x47
    }
  }

  /// A string without an end: if it is short, and keys look like that, it was typed.
  private mutating func breakString(_ emit: (ParsedInput) -> Void) {
    if hasKeyboard || text.count >= Self.stringLimit { finish() } else { endAsKeys(emit) }
  }

  /// The string was none, but a letter with Alt, and others after it.
  private mutating func endAsKeys(_ emit: (ParsedInput) -> Void) {
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

  // MARK: Pastes

  mutating func beginPaste() {
    state = .paste
    text.removeAll(keepingCapacity: true)
    suffix.removeAll(keepingCapacity: true)
    matched = 0
    arrived = 0
    hasReport = false
    isTruncated = false
    isPasteCut = false
  }

  private mutating func takePaste(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    arrived += 1
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
    guard !suffix.isEmpty || byte == 0x1B || byte == Self.interrupt else { return keepText(byte) }
    suffix.append(byte)
    if byte == 0x4D || byte == 0x6D, suffixEndsWithReport { hasReport = true }
    if suffix.count >= (hasReport ? Self.reportsLimit : Self.suffixLimit) { keepSuffix() }
  }

  /// Whether the suffix, whose last byte is M or m, ends with a report of the mouse: `ESC [ <` and three numbers.
  private var suffixEndsWithReport: Bool {
    var start = suffix.count - 1
    var separators = 0
    // Longer ones are no reports.
    let first = max(3, start - 24)
    while start > first, (0x30...0x39).contains(suffix[start - 1]) || suffix[start - 1] == 0x3B {
      if suffix[start - 1] == 0x3B { separators += 1 }
      start -= 1
    }
    return separators == 2 && start >= 3 && suffix[start - 1] == 0x3C && suffix[start - 2] == 0x5B
      && suffix[start - 3] == 0x1B
  }

  private mutating func keepText(_ byte: UInt8) {
    if text.count < pasteLimit { text.append(byte) } else { isTruncated = true }
  }

  /// What could have been keys is text.
  private mutating func keepSuffix() {
    for byte in suffix { keepText(byte) }
    suffix.removeAll(keepingCapacity: true)
  }

  /// The paste has lost its end: what may be keys is taken as keys.
  private mutating func cutPaste(_ emit: (ParsedInput) -> Void) {
    for index in 0..<matched { keep(Self.pasteEnd.utf8Start[index]) }
    let keys = suffix
    suffix = []
    isTruncated = true
    if text.isEmpty { finish() } else { endPaste(emit) }
    isPasteCut = true
    for byte in keys { take(byte, emit) }
  }

  /// The end of a paste arrived that was cut off before.
  mutating func pasteHasEnded() { isPasteCut = false }

  /// Whether bytes after a paste that was cut off belong to it: more than can be typed at once, and no keys.
  private func continuesPaste(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= Self.stringLimit else { return false }
    guard let place = bytes.firstIndex(where: { $0 == 0x1B || $0 == Self.interrupt }) else { return true }
    return bytes[place...].starts(with: UnsafeRawBufferPointer(start: Self.pasteEnd.utf8Start, count: 6))
  }

  private mutating func endPaste(_ emit: (ParsedInput) -> Void) {
    keepSuffix()
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

// SPDX-License-Identifier: Apache-2.0

// Control sequences: their parameters, and the meaning of their final byte.

extension InputParser {
  mutating func takeSequence(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x30...0x39:
      if parameters.intermediate != 0 { parameters.isMalformed = true }
      parameters.add(digit: byte - 0x30)
    case 0x3A: parameters.divide()
    case 0x3B: parameters.separate()
    case 0x3C...0x3F:
      if !parameters.isUntouched { parameters.isMalformed = true }
      parameters.marker = byte
      parameters.touch()
    // For rxvt, this ends a key with Shift.
    case 0x24 where parameters.marker == 0 && parameters.count == 1 && parameters.intermediate == 0:
      tilde([.shift], emit)
    case 0x20...0x2F:
      if parameters.intermediate != 0 { parameters.isMalformed = true }
      parameters.intermediate = byte
      parameters.touch()
    case 0x5B where parameters.isUntouched: state = .console
    case 0x40...0x7E: end(byte, emit)
    default: endAsTyped("[", byte, emit)
    }
  }

  private mutating func end(_ final: UInt8, _ emit: (ParsedInput) -> Void) {
    if parameters.isMalformed || parameters.count > SequenceParameters.limit {
      answerOrNothing(nil, emit)
    } else if parameters.intermediate != 0 {
      let isMode = parameters.marker == 0x3F && parameters.intermediate == 0x24 && final == 0x79
      answerOrNothing(isMode ? .mode(parameters[0] ?? 0, state: parameters[1] ?? 0) : .other, emit)
    } else {
      switch parameters.marker {
      case 0: endOrdinary(final, emit)
      case 0x3C where final == 0x4D || final == 0x6D:
        if hasAlt { key(.escape, [], emit) }
        mouse(parameters[0] ?? 0, parameters[1] ?? 1, parameters[2] ?? 1, isRelease: final == 0x6D, emit)
        finish()
      case 0x3F where final == 0x63: answerOrNothing(.attributes, emit)
      case 0x3F where final == 0x75:
        // Keys after this reply are sent accordingly.
        hasKeyboard = (parameters[0] ?? 0) & 1 != 0
        answerOrNothing(.keyboard(flags: parameters[0] ?? 0), emit)
      case 0x3F where final == 0x52: answerOrNothing(cursor, emit)
      default: answerOrNothing(.other, emit)
      }
    }
  }

  private var cursor: TerminalAnswer {
    .cursor(Point(x: max(1, parameters[1] ?? 1) - 1, y: max(1, parameters[0] ?? 1) - 1))
  }

  /// Ends a sequence that is not a key, so that an ESC before it was one.
  private mutating func answerOrNothing(_ answer: TerminalAnswer?, _ emit: (ParsedInput) -> Void) {
    if hasAlt { key(.escape, [], emit) }
    if let answer { emit(.answer(answer)) }
    finish()
  }

  private mutating func endOrdinary(_ final: UInt8, _ emit: (ParsedInput) -> Void) {
    switch final {
    case 0x7E: return tilde([], emit)
    case 0x5E: return tilde([.control], emit)
    case 0x40: return tilde([.control, .shift], emit)
    case 0x4D where parameters.count == 0:
      if hasAlt { key(.escape, [], emit) }
      hasAlt = false
      return beginMouse()
    case 0x4D where parameters.count == 3:
      if hasAlt { key(.escape, [], emit) }
      mouse((parameters[0] ?? 32) - 32, parameters[1] ?? 1, parameters[2] ?? 1, isRelease: nil, emit)
    case 0x49, 0x4F:
      if hasAlt { key(.escape, [], emit) }
      emit(.event(.focus(final == 0x49)))
    case 0x5A: key(.tab, modifiers.union(.shift), emit)
    case 0x75 where parameters.count > 0: keyboard(parameters[0] ?? 0, parameters.second(0), parameters.third, emit)
    // A cursor position, unless it looks like F3 with modifiers.
    case 0x52 where parameters.count == 2 && !(parameters[0] == 1 && (2...16).contains(parameters[1] ?? 0)):
      return answerOrNothing(cursor, emit)
    case 0x61...0x64 where parameters.count == 0:
      key([.up, .down, .right, .left][Int(final - 0x61)], modifiers.union(.shift), emit)
    default:
      guard let found = Self.cursorKey(final) else {
        // No terminal sends this, so it was typed.
        if parameters.isUntouched, !hasKeyboard { return endAsTyped("[", final, emit) }
        return answerOrNothing(.other, emit)
      }
      if !isRelease { key(found, modifiers, emit) }
    }
    finish()
  }

  /// Returns the key for the final byte of a sequence that starts with ESC [ or ESC O.
  static func cursorKey(_ final: UInt8) -> KeyEvent.Key? {
    switch final {
    case 0x41: .up
    case 0x42: .down
    case 0x43: .right
    case 0x44: .left
    case 0x46: .end
    case 0x48: .home
    case 0x50...0x53: .function(Int(final - 0x4F))
    default: nil
    }
  }

  /// Handles the beginning of a sequence as a letter with Alt if it may be one, and the byte after it as another key.
  private mutating func endAsTyped(_ first: Character, _ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    if hasAlt { key(.escape, [], emit) }
    if parameters.isUntouched, !hasKeyboard { key(.character(first), [.alt], emit) }
    restart(byte, emit)
  }

  // MARK: Modifiers

  /// The modifier keys: bits of the second parameter minus one, and Alt if an ESC precedes the sequence.
  private var modifiers: KeyModifiers {
    var modifiers = KeyModifiers(wire: parameters[1] ?? 1)
    if hasAlt { modifiers.insert(.alt) }
    return modifiers
  }

  /// Whether the keyboard protocol reports that the key was released.
  private var isRelease: Bool { parameters.second(1) == 3 }

  // MARK: Numbered keys

  private mutating func tilde(_ more: KeyModifiers, _ emit: (ParsedInput) -> Void) {
    let number = parameters[0] ?? 0
    if number == 201 { pasteHasEnded() }
    if number == 200, parameters.count == 1, more.isEmpty {
      if hasAlt { key(.escape, [], emit) }
      hasAlt = false
      return beginPaste()
    }
    if number == 27, parameters.count == 3 {
      keyboard(parameters[2] ?? 0, nil, nil, emit)
      return finish()
    }
    if let found = Self.numberedKey(number) {
      if !isRelease { key(found, modifiers.union(more), emit) }
    } else if hasAlt {
      key(.escape, [], emit)
    }
    finish()
  }

  private static func numberedKey(_ number: Int) -> KeyEvent.Key? {
    switch number {
    case 1, 7: .home
    case 2: .insert
    case 3: .delete
    case 4, 8: .end
    case 5: .pageUp
    case 6: .pageDown
    case 11...15: .function(number - 10)
    case 17...21: .function(number - 11)
    case 23...26: .function(number - 12)
    case 28, 29: .function(number - 13)
    case 31...34: .function(number - 14)
    default: nil
    }
  }

  /// Handles a key that is given by its code, in the keyboard protocol or in xterm's protocol for other keys.
  ///
  /// `shifted` is the code with Shift, and `base` is the code of the same key on a Latin keyboard.
  private mutating func keyboard(_ code: Int, _ shifted: Int?, _ base: Int?, _ emit: (ParsedInput) -> Void) {
    var modifiers = modifiers
    guard !isRelease else { return }
    let found: KeyEvent.Key
    switch code {
    case 9: found = .tab
    case 13, 57414: found = .enter
    case 27: found = .escape
    case 8, 127: found = .backspace
    case 57376...57387: found = .function(code - 57376 + 13)
    case 57399...57408: found = .character(Character(Unicode.Scalar(UInt8(0x30 + code - 57399))))
    case 57409...57416: found = .character(Self.keypad[code - 57409])
    case 57417...57426:
      found = [.left, .right, .up, .down, .pageUp, .pageDown, .home, .end, .insert, .delete][code - 57417]
    case 57344...63743: return
    default:
      guard let scalar = KeyboardLayout.scalar(code, shifted: shifted, base: base, &modifiers) else { return }
      found = .character(Character(scalar))
    }
    key(found, modifiers, emit)
  }

  /// The characters of the numeric keypad in the order of the keyboard protocol, with a space in the place of Enter.
  private static let keypad: [Character] = [".", "/", "*", "-", "+", " ", "=", ","]

  // MARK: Other beginnings

  mutating func takeSS3(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x30...0x39: parameters.add(digit: byte - 0x30)
    case 0x3B: parameters.separate()
    case 0x40...0x7E:
      var modifiers = parameters.count < 2 ? KeyModifiers(wire: parameters[0] ?? 1) : self.modifiers
      if hasAlt { modifiers.insert(.alt) }
      if let found = Self.cursorKey(byte) {
        key(found, modifiers, emit)
      } else if byte == 0x4D {
        key(.enter, modifiers, emit)
      } else if (0x61...0x64).contains(byte) {
        key([.up, .down, .right, .left][Int(byte - 0x61)], modifiers.union(.control), emit)
      } else if (0x6A...0x79).contains(byte) {
        // The numeric keypad: * + , - . / and digits.
        key(.character(Character(Unicode.Scalar(byte - 0x40))), modifiers, emit)
      } else if byte == 0x58 {
        key(.character("="), modifiers, emit)
      } else if parameters.isUntouched, !hasKeyboard {
        return endAsTyped("O", byte, emit)
      }
      finish()
    default: endAsTyped("O", byte, emit)
    }
  }

  mutating func takeConsole(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    switch byte {
    case 0x41...0x45:
      key(.function(Int(byte - 0x40)), hasAlt ? [.alt] : [], emit)
      finish()
    case 0x20...0x7E where hasKeyboard: finish()
    default:
      if !hasKeyboard { endAsTyped("[", 0x5B, emit) }
      restart(byte, emit)
    }
  }

  // MARK: The mouse

  /// Handles a mouse report, with columns and rows counted from 1.
  ///
  /// `isRelease` is nil if only the number of the report shows whether a button was released, and not which one.
  mutating func mouse(_ number: Int, _ column: Int, _ row: Int, isRelease: Bool?, _ emit: (ParsedInput) -> Void) {
    guard (0..<128).contains(number) else { return }
    var modifiers: KeyModifiers = []
    if number & 4 != 0 { modifiers.insert(.shift) }
    if number & 8 != 0 { modifiers.insert(.alt) }
    if number & 16 != 0 { modifiers.insert(.control) }
    let location = Point(x: column - 1, y: row - 1)
    let action: MouseEvent.Action
    if number & 64 != 0 {
      guard isRelease != true else { return }
      action = .wheel([.up, .down, .left, .right][number & 3])
    } else if number & 3 == 3 {
      // No button: it was released, or the mouse moved without one.
      if number & 32 != 0 {
        guard isRelease != true else { return }
        action = .move
      } else {
        guard isRelease == nil, let button = heldButton else { return }
        heldButton = nil
        action = .release(button)
      }
    } else {
      let button: MouseEvent.Button = [.left, .middle, .right][number & 3]
      if isRelease == true {
        heldButton = nil
        action = .release(button)
      } else {
        heldButton = button
        action = number & 32 != 0 ? .drag(button) : .press(button)
      }
    }
    emit(.event(.mouse(MouseEvent(action, at: location, modifiers: modifiers))))
  }
}

extension KeyModifiers {
  /// Creates modifiers from the number that terminals send, which is one more than the sum of their bits.
  init(wire number: Int) {
    let bits = max(0, number - 1)
    self = []
    if bits & 1 != 0 { insert(.shift) }
    if bits & 2 != 0 { insert(.alt) }
    if bits & 4 != 0 { insert(.control) }
    if bits & 8 != 0 { insert(.super) }
    if bits & 16 != 0 { insert(.hyper) }
    if bits & 32 != 0 { insert(.meta) }
  }
}

// Legacy mouse reports.
extension InputParser {
  mutating func beginMouse() {
    state = .mouse
    mouseCount = 0
  }

  mutating func takeMouse(_ byte: UInt8, _ emit: (ParsedInput) -> Void) {
    // Mouse reports do not contain control characters.
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

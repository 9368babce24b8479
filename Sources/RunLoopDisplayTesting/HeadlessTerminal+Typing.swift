// SPDX-License-Identifier: Apache-2.0

public import RunLoopDisplay

// Scripted input, encoded as xterm sends it.

extension HeadlessTerminal {
  /// Types characters, with one key press each.
  public func type(_ text: String) { send(text.utf8) }

  /// Presses a key.
  public func press(_ key: KeyEvent.Key, modifiers: KeyModifiers = []) {
    send(sendsCodes ? Self.code(of: key, modifiers) : Self.bytes(of: key, modifiers))
  }

  /// Pastes a text.
  public func paste(_ text: String) {
    guard !faults.ignoredModes.contains(2004) else { return type(text) }
    send("\u{1B}[200~\(text)\(faults.losesEnds ? "" : "\u{1B}[201~")".utf8)
  }

  /// Presses, releases, moves or scrolls with the mouse.
  public func mouse(_ action: MouseEvent.Action, at location: Point, modifiers: KeyModifiers = []) {
    var number = 0
    var final = "M"
    switch action {
    case .press(let button): number = Self.number(of: button)
    case .drag(let button): number = Self.number(of: button) + 32
    case .release(let button):
      if faults.losesEnds { return }
      number = Self.number(of: button)
      final = "m"
    case .move: number = 35
    case .wheel(let wheel):
      switch wheel {
      case .up: number = 64
      case .down: number = 65
      case .left: number = 66
      case .right: number = 67
      }
    }
    if modifiers.contains(.shift) { number += 4 }
    if modifiers.contains(.alt) { number += 8 }
    if modifiers.contains(.control) { number += 16 }
    guard !faults.ignoredModes.contains(1006) else {
      // The legacy encoding, in which a release does not identify the button and columns are limited to 223.
      if case .release = action { number |= 3 }
      let bytes = [number, min(max(-1, location.x), 222) + 1, min(max(-1, location.y), 222) + 1].map {
        UInt8(truncatingIfNeeded: 32 + $0)
      }
      return send("\u{1B}[M".utf8 + bytes)
    }
    // Terminals have at most 65,535 columns and rows.
    let (x, y) = (min(max(-1, location.x), 65_534) + 1, min(max(-1, location.y), 65_534) + 1)
    send("\u{1B}[<\(number);\(x);\(y)\(final)".utf8)
  }

  /// Presses and releases a button at a location.
  public func click(at location: Point, button: MouseEvent.Button = .left) {
    mouse(.press(button), at: location)
    mouse(.release(button), at: location)
  }

  /// Presses a button at the first location, moves through the others, and releases it at the last.
  public func drag(_ places: [Point], button: MouseEvent.Button = .left) {
    guard let first = places.first, let last = places.last else { return }
    mouse(.press(button), at: first)
    for place in places.dropFirst() { mouse(.drag(button), at: place) }
    mouse(.release(button), at: last)
  }

  /// Makes the terminal window frontmost, or moves it to the background.
  public func focus(_ isInFront: Bool) { send((isInFront ? "\u{1B}[I" : "\u{1B}[O").utf8) }

  /// Returns the bytes of a key in the keyboard protocol.
  private static func code(of key: KeyEvent.Key, _ modifiers: KeyModifiers) -> [UInt8] {
    let bits = wire(modifiers)
    let code: Int
    switch key {
    case .escape: code = 27
    case .enter where bits != 0: code = 13
    case .tab where bits != 0: code = 9
    case .backspace where bits != 0: code = 127
    case .character(let character) where bits & ~1 != 0:
      guard let scalar = character.unicodeScalars.first else { return [] }
      code = Int(scalar.value)
    default: return bytes(of: key, modifiers)
    }
    return Array((bits == 0 ? "\u{1B}[\(code)u" : "\u{1B}[\(code);\(bits + 1)u").utf8)
  }

  private static func wire(_ modifiers: KeyModifiers) -> Int {
    let places: [KeyModifiers] = [.shift, .alt, .control, .super, .hyper, .meta]
    return places.enumerated().reduce(0) { $0 + (modifiers.contains($1.element) ? 1 << $1.offset : 0) }
  }

  private static func number(of button: MouseEvent.Button) -> Int {
    switch button {
    case .left: 0
    case .middle: 1
    case .right: 2
    }
  }

  private static func bytes(of key: KeyEvent.Key, _ modifiers: KeyModifiers) -> [UInt8] {
    let bits = wire(modifiers)
    let alt = modifiers.contains(.alt) ? "\u{1B}" : ""
    func cursor(_ final: String) -> String { bits == 0 ? "\u{1B}[\(final)" : "\u{1B}[1;\(bits + 1)\(final)" }
    func numbered(_ number: Int) -> String { bits == 0 ? "\u{1B}[\(number)~" : "\u{1B}[\(number);\(bits + 1)~" }
    let text: String
    switch key {
    case .character(let character):
      guard modifiers.contains(.control), let value = character.asciiValue else {
        return Array((alt + String(character)).utf8)
      }
      return Array(alt.utf8) + [value & 0x1F]
    case .enter: text = alt + "\r"
    case .tab: text = modifiers.contains(.shift) ? "\u{1B}[Z" : alt + "\t"
    case .backspace: text = alt + "\u{7F}"
    case .escape: text = alt + "\u{1B}"
    case .up: text = cursor("A")
    case .down: text = cursor("B")
    case .right: text = cursor("C")
    case .left: text = cursor("D")
    case .home: text = cursor("H")
    case .end: text = cursor("F")
    case .insert: text = numbered(2)
    case .delete: text = numbered(3)
    case .pageUp: text = numbered(5)
    case .pageDown: text = numbered(6)
    case .function(let number):
      switch number {
      case 1...4 where bits == 0: text = "\u{1B}O" + ["P", "Q", "R", "S"][number - 1]
      case 1...4: text = cursor(["P", "Q", "R", "S"][number - 1])
      case 5...20: text = numbered([15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34][number - 5])
      default: text = numbered(57376 + min(max(0, number), 35) - 13).dropLast() + "u"
      }
    }
    return Array(text.utf8)
  }
}

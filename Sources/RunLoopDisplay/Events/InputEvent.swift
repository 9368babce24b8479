// SPDX-License-Identifier: Apache-2.0

/// An event from a device, parsed.
public enum InputEvent: Hashable, Sendable {
  /// A key was pressed.
  case key(KeyEvent)
  /// The mouse was pressed, released, moved or turned.
  case mouse(MouseEvent)
  /// A text was pasted.
  ///
  /// If `isTruncated` is true, the text was longer than the limit, and its end is missing.
  case paste(String, isTruncated: Bool)
  /// The device has another size.
  case resize(Size)
  /// The terminal's window came to the front, or left it.
  case focus(Bool)
  /// The device has gone: what was shown on it is lost, and no more events arrive from it.
  case hangUp
}

/// The keys that were held down with another.
public struct KeyModifiers: OptionSet, Hashable, Sendable {
  /// The raw value.
  public let rawValue: UInt8

  /// Makes a value from its raw value.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Shift.
  public static let shift = KeyModifiers(rawValue: 1 << 0)
  /// Alt, also called Option.
  public static let alt = KeyModifiers(rawValue: 1 << 1)
  /// Control.
  public static let control = KeyModifiers(rawValue: 1 << 2)
  /// Super, also called Command or the Windows key; only terminals with kitty's keyboard protocol report it.
  public static let `super` = KeyModifiers(rawValue: 1 << 3)
  /// Hyper, reported like Super.
  public static let hyper = KeyModifiers(rawValue: 1 << 4)
  /// Meta where it is not Alt, reported like Super.
  public static let meta = KeyModifiers(rawValue: 1 << 5)

  /// Those with which a character is a command, and no text.
  static let commands: KeyModifiers = [.control, .alt, .super, .hyper, .meta]
}

/// A key that was pressed.
public struct KeyEvent: Hashable, Sendable {
  /// A key of the keyboard.
  public enum Key: Hashable, Sendable {
    /// A character as it was typed, with Shift taken into account; with Control, the letter in lower case.
    ///
    /// With Control, Alt or Super on a keyboard that is not Latin it is the letter of the same key on a Latin one, as
    /// far as the terminal reports it: Ctrl-C is the same key for everybody.
    ///
    /// It is one scalar: a character that is typed as several, such as a letter and a combining accent, arrives as a
    /// key for each.
    case character(Character)
    /// Enter, Tab, the key that deletes backwards, and Escape.
    case enter, tab, backspace, escape
    /// The arrows.
    case left, right, up, down
    /// The keys above the arrows.
    case home, end, pageUp, pageDown, insert, delete
    /// F1 to F24.
    case function(Int)
  }

  /// The key.
  public var key: Key
  /// The keys that were held down with it.
  ///
  /// Shift is reported only if the key alone does not show it.
  public var modifiers: KeyModifiers

  /// Makes a key event.
  public init(_ key: Key, modifiers: KeyModifiers = []) {
    self.key = key
    self.modifiers = modifiers
  }
}

/// An action with the mouse.
public struct MouseEvent: Hashable, Sendable {
  /// The kinds of actions.
  public enum Action: Hashable, Sendable {
    /// A button was pressed.
    case press(Button)
    /// A button was released.
    case release(Button)
    /// The mouse moved with a button held down.
    case drag(Button)
    /// The mouse moved without a button; reported if the device follows it, see ``MouseTracking/movements``.
    case move
    /// The wheel was turned by one notch.
    case wheel(Wheel)
  }

  /// A button of the mouse.
  public enum Button: Hashable, Sendable {
    /// The buttons, from the left.
    case left, middle, right
  }

  /// The directions of the wheel.
  public enum Wheel: Hashable, Sendable {
    /// Away from the user, towards the user, and to the sides.
    case up, down, left, right
  }

  /// The action.
  public var action: Action
  /// The cell under the mouse; it may be outside the screen while a button is held down.
  public var location: Point
  /// The keys that were held down.
  public var modifiers: KeyModifiers

  /// Makes a mouse event.
  public init(_ action: Action, at location: Point, modifiers: KeyModifiers = []) {
    self.action = action
    self.location = location
    self.modifiers = modifiers
  }
}

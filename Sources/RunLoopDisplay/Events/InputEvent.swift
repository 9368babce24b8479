// SPDX-License-Identifier: Apache-2.0

/// A parsed event from a device.
public enum InputEvent: Hashable, Sendable {
  /// A key was pressed.
  case key(KeyEvent)
  /// A mouse button was pressed or released, the mouse was moved, or its wheel was turned.
  case mouse(MouseEvent)
  /// Text was pasted.
  ///
  /// If `isTruncated` is true, the text was longer than the limit and its end is missing.
  case paste(String, isTruncated: Bool)
  /// The size of the device changed.
  case resize(Size)
  /// The terminal window became or stopped being the frontmost window.
  case focus(Bool)
  /// The device was disconnected: its contents are lost, and no more events arrive from it.
  case hangUp
}

/// The modifier keys that were held down during an event.
public struct KeyModifiers: OptionSet, Hashable, Sendable {
  /// The raw value.
  public let rawValue: UInt8

  /// Creates a value from its raw value.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Shift.
  public static let shift = KeyModifiers(rawValue: 1 << 0)
  /// Alt, also called Option.
  public static let alt = KeyModifiers(rawValue: 1 << 1)
  /// Control.
  public static let control = KeyModifiers(rawValue: 1 << 2)
  /// Super, Command or the Windows key, reported only by terminals with the kitty keyboard protocol.
  public static let `super` = KeyModifiers(rawValue: 1 << 3)
  /// Hyper, which is reported by the same terminals as Super.
  public static let hyper = KeyModifiers(rawValue: 1 << 4)
  /// Meta if it is distinct from Alt, reported by the same terminals as Super.
  public static let meta = KeyModifiers(rawValue: 1 << 5)

  /// The modifiers that make a character a command instead of text.
  static let commands: KeyModifiers = [.control, .alt, .super, .hyper, .meta]
}

/// A key press.
public struct KeyEvent: Hashable, Sendable {
  /// A key of the keyboard.
  public enum Key: Hashable, Sendable {
    /// A typed character, with Shift applied. If Control is held down, it is a lowercase letter.
    ///
    /// With Control, Alt or Super on a non-Latin keyboard, it is the letter of the same key on a Latin keyboard, as
    /// far as the terminal reports it, so Ctrl-C is the same key for all users.
    ///
    /// It consists of a single scalar. A character that is typed as several scalars, such as a letter and a
    /// combining accent, arrives as one key event per scalar.
    case character(Character)
    /// Enter, Tab, Backspace, and Escape.
    case enter, tab, backspace, escape
    /// The arrow keys.
    case left, right, up, down
    /// The navigation keys above the arrow keys.
    case home, end, pageUp, pageDown, insert, delete
    /// A function key, F1 to F24.
    case function(Int)
  }

  /// The key.
  public var key: Key
  /// The modifier keys that were held down.
  ///
  /// Shift is included only if ``key`` does not reflect it.
  public var modifiers: KeyModifiers

  /// Creates a key event.
  public init(_ key: Key, modifiers: KeyModifiers = []) {
    self.key = key
    self.modifiers = modifiers
  }
}

/// A mouse action.
public struct MouseEvent: Hashable, Sendable {
  /// The kinds of mouse actions.
  public enum Action: Hashable, Sendable {
    /// A button was pressed.
    case press(Button)
    /// A button was released.
    case release(Button)
    /// The mouse moved while a button was held down.
    case drag(Button)
    /// The mouse moved without a button. Reported only if the device tracks it; see ``MouseTracking/movements``.
    case move
    /// The wheel was turned by one notch.
    case wheel(Wheel)
  }

  /// A mouse button.
  public enum Button: Hashable, Sendable {
    /// The buttons from left to right.
    case left, middle, right
  }

  /// The directions of the wheel.
  public enum Wheel: Hashable, Sendable {
    /// Away from the user, towards the user, or to the sides.
    case up, down, left, right
  }

  /// The action.
  public var action: Action
  /// The cell under the mouse, which may be outside the screen while a button is held down.
  public var location: Point
  /// The modifier keys that were held down.
  public var modifiers: KeyModifiers

  /// Creates a mouse event.
  public init(_ action: Action, at location: Point, modifiers: KeyModifiers = []) {
    self.action = action
    self.location = location
    self.modifiers = modifiers
  }
}

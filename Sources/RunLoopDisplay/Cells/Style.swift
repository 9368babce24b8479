// SPDX-License-Identifier: Apache-2.0

/// A colour of text or of its background.
///
/// A terminal that cannot show a colour shows the nearest one that it has.
public struct Color: Hashable, Sendable {
  /// The kind in the upper byte: 0 default, 1 of the palette, 2 red, green and blue.
  let bits: UInt32

  private init(bits: UInt32) { self.bits = bits }

  /// The terminal's own colour.
  public static let `default` = Color(bits: 0)

  /// A colour of the terminal's palette: 0 to 7 as named below, 8 to 15 bright, then the cube and the greys.
  public static func palette(_ index: UInt8) -> Color { Color(bits: 1 << 24 | UInt32(index)) }

  /// A colour by its parts.
  public static func rgb(_ red: UInt8, _ green: UInt8, _ blue: UInt8) -> Color {
    Color(bits: 2 << 24 | UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue))
  }

  /// The palette's black.
  public static let black = palette(0)
  /// The palette's red.
  public static let red = palette(1)
  /// The palette's green.
  public static let green = palette(2)
  /// The palette's yellow.
  public static let yellow = palette(3)
  /// The palette's blue.
  public static let blue = palette(4)
  /// The palette's magenta.
  public static let magenta = palette(5)
  /// The palette's cyan.
  public static let cyan = palette(6)
  /// The palette's white.
  public static let white = palette(7)
}

/// How the characters of a cell look.
public struct Style: Hashable, Sendable {
  /// The attributes that can be added to a character.
  public struct Attributes: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Makes a value from its raw value.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Heavier, or brighter.
    public static let bold = Attributes(rawValue: 1 << 0)
    /// Fainter.
    public static let dim = Attributes(rawValue: 1 << 1)
    /// Slanted.
    public static let italic = Attributes(rawValue: 1 << 2)
    /// With a line below.
    public static let underline = Attributes(rawValue: 1 << 3)
    /// The colours of text and background are exchanged.
    public static let reverse = Attributes(rawValue: 1 << 4)
    /// With a line through it.
    public static let strikethrough = Attributes(rawValue: 1 << 5)
  }

  /// The text's colour.
  public var foreground: Color
  /// The background's colour.
  public var background: Color
  /// The attributes of the text.
  public var attributes: Attributes
  // The number of the decoration takes three bytes, so that a cell has sixteen.
  private var highDecoration: UInt8 = 0
  private var lowDecoration: UInt16 = 0

  /// Makes a style.
  public init(foreground: Color = .default, background: Color = .default, attributes: Attributes = []) {
    self.foreground = foreground
    self.background = background
    self.attributes = attributes
  }

  /// The number of the link and the underline; 0: none.
  var decoration: UInt32 {
    get { UInt32(highDecoration) << 16 | UInt32(lowDecoration) }
    set {
      highDecoration = UInt8(truncatingIfNeeded: newValue >> 16)
      lowDecoration = UInt16(truncatingIfNeeded: newValue)
    }
  }

  /// The terminal's own colours, and no attributes.
  public static let plain = Style()
  /// The terminal's own colours, exchanged.
  public static let reversed = Style(attributes: .reverse)
}

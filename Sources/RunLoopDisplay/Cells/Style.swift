// SPDX-License-Identifier: Apache-2.0

/// A colour of text or of its background.
///
/// Terminals that do not support a colour show the nearest one that they support.
public struct Color: Hashable, Sendable {
  /// The kind in the upper byte: 0 for the default, 1 for the palette, 2 for red, green and blue.
  let bits: UInt32

  private init(bits: UInt32) { self.bits = bits }

  /// The terminal's default colour.
  public static let `default` = Color(bits: 0)

  /// Returns a palette colour: 0 to 7 are the named ones below, 8 to 15 bright, followed by the cube and the greys.
  public static func palette(_ index: UInt8) -> Color { Color(bits: 1 << 24 | UInt32(index)) }

  /// Returns a colour with the given components.
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

/// The appearance of the characters in a cell.
public struct Style: Hashable, Sendable {
  /// The attributes of a character.
  public struct Attributes: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bold or brighter text.
    public static let bold = Attributes(rawValue: 1 << 0)
    /// Fainter text.
    public static let dim = Attributes(rawValue: 1 << 1)
    /// Italic text.
    public static let italic = Attributes(rawValue: 1 << 2)
    /// Text with a line below it.
    public static let underline = Attributes(rawValue: 1 << 3)
    /// Text and background colours are exchanged.
    public static let reverse = Attributes(rawValue: 1 << 4)
    /// Text with a line through it.
    public static let strikethrough = Attributes(rawValue: 1 << 5)
  }

  /// The colour of the text.
  public var foreground: Color
  /// The colour of the background.
  public var background: Color
  /// The attributes of the text.
  public var attributes: Attributes
  // The decoration number is limited to three bytes, so that a cell fits in 16 bytes.
  private var highDecoration: UInt8 = 0
  private var lowDecoration: UInt16 = 0

  /// Creates a style.
  public init(foreground: Color = .default, background: Color = .default, attributes: Attributes = []) {
    self.foreground = foreground
    self.background = background
    self.attributes = attributes
  }

  /// The number of the link and underline decoration, or 0.
  var decoration: UInt32 {
    get { UInt32(highDecoration) << 16 | UInt32(lowDecoration) }
    set {
      highDecoration = UInt8(truncatingIfNeeded: newValue >> 16)
      lowDecoration = UInt16(truncatingIfNeeded: newValue)
    }
  }

  /// The terminal's default colours, without attributes.
  public static let plain = Style()
  /// The terminal's default colours, exchanged.
  public static let reversed = Style(attributes: .reverse)
}

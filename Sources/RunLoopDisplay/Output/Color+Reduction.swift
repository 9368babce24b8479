// SPDX-License-Identifier: Apache-2.0

// Conversion to the nearest colour that a terminal supports.

extension Color {
  var isDefault: Bool { bits == 0 }
  /// The palette index, or nil for the default colour and for RGB colours.
  var paletteIndex: UInt8? { bits >> 24 == 1 ? UInt8(truncatingIfNeeded: bits) : nil }
  /// The red, green and blue components of an RGB colour.
  var parts: (red: Int, green: Int, blue: Int) {
    (Int(bits >> 16 & 0xFF), Int(bits >> 8 & 0xFF), Int(bits & 0xFF))
  }

  /// Returns the nearest colour that a terminal supports.
  func reduced(to colors: TerminalCapabilities.Colors) -> Color {
    if isDefault { return self }
    switch colors {
    case .none: return .default
    case .rgb: return self
    case .palette256: return paletteIndex == nil ? .palette(nearestInCube) : self
    case .ansi16:
      if let paletteIndex, paletteIndex < 16 { return self }
      return .palette(nearestOfSixteen)
    }
  }

  private static let levels = [0, 95, 135, 175, 215, 255]

  /// The nearest colour in the cube and the greys of the palette.
  private var nearestInCube: UInt8 {
    let (red, green, blue) = parts
    func level(_ value: Int) -> Int { value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40 }
    let cube = (level(red), level(green), level(blue))
    let grey = min(23, max(0, ((red + green + blue) / 3 - 3) / 10))
    func distance(_ other: (Int, Int, Int)) -> Int {
      (red - other.0) * (red - other.0) + (green - other.1) * (green - other.1) + (blue - other.2) * (blue - other.2)
    }
    let inCube = distance((Self.levels[cube.0], Self.levels[cube.1], Self.levels[cube.2]))
    let inGreys = distance((8 + grey * 10, 8 + grey * 10, 8 + grey * 10))
    return UInt8(inGreys < inCube ? 232 + grey : 16 + 36 * cube.0 + 6 * cube.1 + cube.2)
  }

  /// The nearest of the first 16 colours, as most terminals show them.
  private var nearestOfSixteen: UInt8 {
    let (red, green, blue) = approximateParts
    let highest = max(red, green, blue)
    let lowest = min(red, green, blue)
    // Greys: black, dark grey, light grey, white.
    if highest - lowest < 32 { return highest < 64 ? 0 : highest < 160 ? 8 : highest < 224 ? 7 : 15 }
    let half = (highest + lowest) / 2
    let index = (red > half ? 1 : 0) | (green > half ? 2 : 0) | (blue > half ? 4 : 0)
    return UInt8(index + (highest > 204 ? 8 : 0))
  }

  private var approximateParts: (red: Int, green: Int, blue: Int) {
    guard let paletteIndex else { return parts }
    let index = Int(paletteIndex)
    if index >= 232 { return (8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10) }
    let cube = index - 16
    return (Self.levels[cube / 36], Self.levels[cube / 6 % 6], Self.levels[cube % 6])
  }
}

extension TerminalCapabilities {
  /// Returns the style with the nearest colours that the terminal supports, and without unsupported decorations.
  func reduced(_ style: Style) -> Style {
    if colors == .rgb, style.decoration == 0 { return style }
    var reduced = Style(
      foreground: style.foreground.reduced(to: colors), background: style.background.reduced(to: colors),
      attributes: style.attributes)
    if decorates { reduced.decoration = style.decoration }
    return reduced
  }
}

// SPDX-License-Identifier: Apache-2.0

extension OutputWriter {
  /// Sets the style by the fewest bytes: from the one that is set, or anew.
  ///
  /// `style` has the colours that the terminal has.
  mutating func setPen(_ style: Style) {
    let start = bytes.count
    putStyle(style, from: .plain, isReset: true)
    if state.isPenKnown {
      let middle = bytes.count
      putStyle(style, from: state.pen, isReset: false)
      if bytes.count - middle < middle - start {
        bytes.removeSubrange(start..<middle)
      } else {
        bytes.removeSubrange(middle...)
      }
    }
    state.pen = style
    state.isPenKnown = true
  }

  private mutating func putStyle(_ style: Style, from old: Style, isReset: Bool) {
    if !isReset && style == old { return }
    put("\u{1B}[")
    var isFirst = true
    // A reset is a number that is left out.
    if isReset, style != .plain { isFirst = false }
    let gone = old.attributes.subtracting(style.attributes)
    var old = old
    if !gone.isDisjoint(with: [.bold, .dim]) {
      put(22, &isFirst)
      old.attributes.subtract([.bold, .dim])
    }
    if gone.contains(.italic) { put(23, &isFirst) }
    if gone.contains(.underline) { put(24, &isFirst) }
    if gone.contains(.reverse) { put(27, &isFirst) }
    if gone.contains(.strikethrough) { put(29, &isFirst) }
    let added = style.attributes.subtracting(old.attributes)
    if added.contains(.bold) { put(1, &isFirst) }
    if added.contains(.dim) { put(2, &isFirst) }
    if added.contains(.italic) { put(3, &isFirst) }
    if added.contains(.underline) { put(4, &isFirst) }
    if added.contains(.reverse) { put(7, &isFirst) }
    if added.contains(.strikethrough) { put(9, &isFirst) }
    if style.foreground != old.foreground { put(style.foreground, 30, &isFirst) }
    if style.background != old.background { put(style.background, 40, &isFirst) }
    put(0x6D)
  }

  private mutating func put(_ color: Color, _ base: Int, _ isFirst: inout Bool) {
    if color.isDefault {
      put(base + 9, &isFirst)
    } else if let index = color.paletteIndex {
      if index < 8 {
        put(base + Int(index), &isFirst)
      } else if index < 16 {
        put(base + 60 + Int(index) - 8, &isFirst)
      } else {
        put(base + 8, &isFirst)
        put(5, &isFirst)
        put(Int(index), &isFirst)
      }
    } else {
      put(base + 8, &isFirst)
      put(2, &isFirst)
      put(color.parts.red, &isFirst)
      put(color.parts.green, &isFirst)
      put(color.parts.blue, &isFirst)
    }
  }

  private mutating func put(_ parameter: Int, _ isFirst: inout Bool) {
    if !isFirst { put(0x3B) }
    isFirst = false
    put(number: parameter)
  }
}

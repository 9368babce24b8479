// SPDX-License-Identifier: Apache-2.0

extension OutputWriter {
  /// Sets the style with as few bytes as possible, either as a change of the current style or from scratch.
  ///
  /// The colours of `style` must be ones that the terminal supports.
  mutating func setPen(_ style: Style) {
    if style.decoration != state.pen.decoration || !state.isPenKnown {
      putLink(style.decoration == 0 ? "" : DecorationTable.shared[style.decoration].link, style.decoration)
    }
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

  /// Sets the link of the text that follows.
  ///
  /// Cells with the same number form one link.
  mutating func putLink(_ link: String, _ number: UInt32) {
    guard link != state.link else { return }
    state.link = link
    guard !link.isEmpty else { return put("\u{1B}]8;;\u{1B}\\") }
    put("\u{1B}]8;id=")
    put(number: Int(number))
    put(0x3B)
    bytes.append(contentsOf: link.utf8)
    put("\u{1B}\\")
  }

  /// Returns the decoration of an underlined style, or nil if the style is not underlined.
  private func underline(_ style: Style) -> Decoration? {
    guard style.attributes.contains(.underline) else { return nil }
    return style.decoration == 0 ? Decoration() : DecorationTable.shared[style.decoration]
  }

  private mutating func putUnderline(_ style: Style, from old: Style, _ isFirst: inout Bool) {
    let (new, before) = (underline(style), underline(old))
    if new == nil, before != nil { put(24, &isFirst) }
    if let new, new.underlineStyle != before?.underlineStyle {
      put(4, &isFirst)
      if new.underlineStyle != .single {
        put(0x3A)
        put(number: Int(new.underlineStyle.rawValue))
      }
    }
    let color = (new?.underlineColor ?? .default).reduced(to: capabilities.colors)
    guard color != (before?.underlineColor ?? .default).reduced(to: capabilities.colors) else { return }
    guard !color.isDefault else { return put(59, &isFirst) }
    put(58, &isFirst)
    if let index = color.paletteIndex {
      put(":5:")
      put(number: Int(index))
    } else {
      put(":2::")
      put(number: color.parts.red)
      put(0x3A)
      put(number: color.parts.green)
      put(0x3A)
      put(number: color.parts.blue)
    }
  }

  private mutating func putStyle(_ style: Style, from old: Style, isReset: Bool) {
    if !isReset && style == old { return }
    put("\u{1B}[")
    var isFirst = true
    // The parameter of a reset is omitted.
    if isReset, style != .plain { isFirst = false }
    let gone = old.attributes.subtracting(style.attributes)
    var old = old
    if !gone.isDisjoint(with: [.bold, .dim]) {
      put(22, &isFirst)
      old.attributes.subtract([.bold, .dim])
    }
    if gone.contains(.italic) { put(23, &isFirst) }
    putUnderline(style, from: old, &isFirst)
    if gone.contains(.reverse) { put(27, &isFirst) }
    if gone.contains(.strikethrough) { put(29, &isFirst) }
    let added = style.attributes.subtracting(old.attributes)
    if added.contains(.bold) { put(1, &isFirst) }
    if added.contains(.dim) { put(2, &isFirst) }
    if added.contains(.italic) { put(3, &isFirst) }
    if added.contains(.reverse) { put(7, &isFirst) }
    if added.contains(.strikethrough) { put(9, &isFirst) }
    if style.foreground != old.foreground { put(style.foreground, 30, &isFirst) }
    if style.background != old.background { put(style.background, 40, &isFirst) }
    // If only the links of two styles differ, a sequence without parameters would be a reset.
    guard isReset || !isFirst else { return bytes.removeLast(2) }
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

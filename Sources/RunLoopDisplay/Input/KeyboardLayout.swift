// SPDX-License-Identifier: Apache-2.0

/// Characters of keys: with Shift, and with modifiers on keyboards that are not Latin.
enum KeyboardLayout {
  /// The scalar of a key with its modifiers, of which Shift is taken away if the scalar shows it; nil if it is none.
  ///
  /// - Parameters:
  ///   - code: The key's scalar without Shift.
  ///   - shifted: The scalar with Shift, if the terminal reports it.
  ///   - base: The scalar of the same key on a Latin keyboard, if the terminal reports it.
  static func scalar(_ code: Int, shifted: Int?, base: Int?, _ modifiers: inout KeyModifiers) -> Unicode.Scalar? {
    var value = code
    if code >= 0x80, !modifiers.isDisjoint(with: .commands), let latin = base ?? latin(code), latin < 0x80 {
      value = latin
    }
    if modifiers.contains(.control) {
      if (0x41...0x5A).contains(value) { value += 0x20 }
    } else if modifiers.contains(.shift) {
      let upper = value == code ? shifted ?? uppercase(value) : uppercase(value)
      if let upper, upper != value {
        value = upper
        modifiers.remove(.shift)
      }
    }
    guard value >= 0x20, value != 0x7F else { return nil }
    return Unicode.Scalar(UInt32(value))
  }

  private static func uppercase(_ value: Int) -> Int? {
    guard let scalar = Unicode.Scalar(UInt32(value)) else { return nil }
    let upper = scalar.properties.uppercaseMapping.unicodeScalars
    return upper.count == 1 ? upper.first.map { Int($0.value) } : nil
  }

  /// The key on a Latin keyboard, by the usual layouts, for terminals that do not report it.
  static func latin(_ code: Int) -> Int? {
    for (letters, keys) in layouts {
      for (letter, key) in zip(letters.unicodeScalars, keys.utf8) where Int(letter.value) == code { return Int(key) }
    }
    return nil
  }

  private static let layouts: [(letters: String, keys: String)] = [
    // Russian, with the letters of Ukrainian and Belarusian.
    ("йцукенгшщзхъфывапролджэячсмитьбюёіїєў", "qwertyuiop[]asdfghjkl;'zxcvbnm,.`s]'o"),
    // Greek.
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
    // Hebrew.
    ("קראטוןםפשדגכעיחלךףזסבהנמצתץ", "ertyuiopasdfghjkl;zxcvbnm,."),
    // Arabic.
    ("ضصثقفغعهخحجدشسيبلاتنمكطئءؤرىةوزظ", "qwertyuiop[]asdfghjkl;'zxcvnm,./"),
  ]
}

// SPDX-License-Identifier: Apache-2.0

/// The characters of keys with Shift, and of keys with other modifiers on non-Latin keyboards.
enum KeyboardLayout {
  /// Returns the scalar of a key, or nil if there is none, and removes Shift if the scalar reflects it.
  ///
  /// - Parameters:
  ///   - code: The scalar of the key without Shift.
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

  /// Returns the corresponding key on a Latin keyboard, based on common layouts, for terminals that do not report it.
  static func latin(_ code: Int) -> Int? {
    for (letters, keys) in layouts {
      for (letter, key) in zip(letters.unicodeScalars, keys.utf8) where Int(letter.value) == code { return Int(key) }
    }
    return nil
  }

  private static let layouts: [(letters: String, keys: String)] = [
    // Russian, including Ukrainian and Belarusian letters.
    ("йцукенгшщзхъфывапролджэячсмитьбюёіїєў", "qwertyuiop[]asdfghjkl;'zxcvbnm,.`s]'o"),
    // Greek.
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
    // Hebrew.
    ("קראטוןםפשדגכעיחלךףזסבהנמצתץ", "ertyuiopasdfghjkl;zxcvbnm,."),
    // Arabic.
    ("ضصثقفغعهخحجدشسيبلاتنمكطئءؤرىةوزظ", "qwertyuiop[]asdfghjkl;'zxcvnm,./"),
  ]
}

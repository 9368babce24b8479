// SPDX-License-Identifier: Apache-2.0

/// Escaping of text from other processes, such as names of threads, modes and functions.
///
/// Such text may come from another user who wants it to reach root's terminal as commands, or to look like the tool's
/// output. All output of the tool is escaped here: text for people by ``shown(_:)`` and JSON by ``quoted(_:)``.
package enum ForeignText {
  /// Whether a character is a control, a line separator, or an invisible format character that can reorder or hide
  /// text.
  ///
  /// Joiners, which scripts and emoji need, are not hidden.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.value < 0x20 || scalar.value >= 0x7f else { return false }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: return true
    case .format: return scalar != "\u{200c}" && scalar != "\u{200d}"
    default: return false
    }
  }

  /// Returns a single line of text in which U+FFFD replaces hidden characters.
  package static func shown(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isHidden) else { return text }
    var shown = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { shown.append(isHidden(scalar) ? "\u{fffd}" : scalar) }
    return String(shown)
  }

  /// Returns a JSON string literal in which hidden characters are escaped.
  ///
  /// - Parameter isInPage: Whether it is embedded in HTML, where `<` could end the element.
  package static func quoted(_ text: String, isInPage: Bool = false) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case _ where isHidden(scalar) || isInPage && (scalar == "<" || scalar == ">" || scalar == "&"):
        for unit in scalar.utf16 {
          let digits = String(unit, radix: 16)
          quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

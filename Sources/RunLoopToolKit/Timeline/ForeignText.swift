// SPDX-License-Identifier: Apache-2.0

/// Texts of other processes, such as names of threads, modes and functions: they may be another user's, who wants them
/// to reach the terminal of root as commands, or to be read as lines of the tool.
///
/// Everything that the tool writes goes through here: what is for people by ``shown(_:)``, documents by ``quoted(_:)``.
package enum ForeignText {
  /// Whether a character does something else than being seen: controls of both sets, ends of lines, what changes the
  /// direction of text or hides in it.
  ///
  /// Not those that join the characters of scripts and of pictures.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.value < 0x20 || scalar.value >= 0x7f else { return false }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: return true
    case .format: return scalar != "\u{200c}" && scalar != "\u{200d}"
    default: return false
    }
  }

  /// A text for people, of one line, with U+FFFD in the place of each character that would do something.
  package static func shown(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isHidden) else { return text }
    var shown = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { shown.append(isHidden(scalar) ? "\u{fffd}" : scalar) }
    return String(shown)
  }

  /// A text as JSON has it, in quotes, with a number in the place of each character that would do something.
  ///
  /// - Parameter isInPage: Whether it stands in a page of HTML, where `<` may end what it is in.
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

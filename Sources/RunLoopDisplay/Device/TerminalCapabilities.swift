// SPDX-License-Identifier: Apache-2.0

/// What a terminal can do, as far as it has said so.
package struct TerminalCapabilities: Hashable, Sendable {
  /// How many colours there are.
  package enum Colors: Hashable, Sendable {
    /// None: `NO_COLOR` is set, or the terminal has none.
    case none
    case ansi16
    case palette256
    case rgb
  }

  package var colors: Colors
  /// Synchronised output: a frame is shown as a whole (private mode 2026).
  package var synchronizes = false
  /// A cluster of scalars is one character (private mode 2027).
  package var knowsClusters = false
  /// The clusters of scalars that are one character, as a measurement of some of each kind has shown.
  package var joinedClusters: CharacterWidth.Kinds = []
  /// The version of Unicode up to which the widths of scalars are those of the table, as a measurement has shown.
  package var unicodeVersion = CharacterWidth.knownVersion
  /// The clusters that are written whole.
  var wholeClusters: CharacterWidth.Kinds { knowsClusters ? .all : joinedClusters }
  /// A character can be repeated by its number (REP).
  package var repeats = false
  /// What is erased gets the background's colour.
  package var erasesWithColor = false
  /// Links, and underlines of several shapes and colours, are understood.
  package var decorates = false
  /// Rows can be scrolled by their number (SU and SD), which the Linux console and terminals of the first kind cannot.
  package var scrolls = true

  package init(
    colors: Colors = .rgb, synchronizes: Bool = false, knowsClusters: Bool = false, repeats: Bool = false,
    erasesWithColor: Bool = false
  ) {
    self.colors = colors
    self.synchronizes = synchronizes
    self.knowsClusters = knowsClusters
    self.repeats = repeats
    self.erasesWithColor = erasesWithColor
  }

  /// What the environment says: `TERM`, `COLORTERM` and `NO_COLOR`.
  package init(environment value: (String) -> String?) {
    let name = value("TERM") ?? ""
    let color = value("COLORTERM") ?? ""
    self.init(colors: .ansi16)
    scrolls = !["linux", "vt", "ansi", "cons"].contains { name.hasPrefix($0) }
    if let no = value("NO_COLOR"), !no.isEmpty {
      colors = .none
    } else if color == "truecolor" || color == "24bit" || name.contains("direct") {
      colors = .rgb
    } else if ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-extra", "wezterm", "contour"].contains(name) {
      colors = .rgb
    } else if name.contains("256color") {
      colors = .palette256
    } else if name.hasPrefix("vt") {
      colors = .none
    }
  }

  /// Takes what a terminal has said about itself into account.
  package mutating func note(version text: String) {
    let known = ["xterm", "tmux", "kitty", "foot", "wezterm", "contour", "ghostty", "vte"]
    let name = text.lowercased()
    guard known.contains(where: { name.hasPrefix($0) }) else { return }
    repeats = true
    erasesWithColor = true
    // Of xterm both would be ignored at best; of tmux they are from 3.4 on.
    decorates = !name.hasPrefix("xterm") && !(name.hasPrefix("tmux") && Self.number(in: name) < (3, 4))
  }

  /// The first number of a version, and the one behind its dot.
  private static func number(in text: String) -> (Int, Int) {
    let parts = text.drop { !$0.isNumber }.split(separator: ".")
    let numbers = parts.map { Int($0.prefix { $0.isNumber }) ?? 0 }
    return (numbers.first ?? 0, numbers.count > 1 ? numbers[1] : 0)
  }
}

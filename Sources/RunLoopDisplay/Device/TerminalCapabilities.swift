// SPDX-License-Identifier: Apache-2.0

/// The capabilities of a terminal, as far as they are known.
package struct TerminalCapabilities: Hashable, Sendable {
  /// The colours that a terminal supports.
  package enum Colors: Hashable, Sendable {
    /// No colours, because `NO_COLOR` is set or the terminal has none.
    case none
    case ansi16
    case palette256
    case rgb
  }

  package var colors: Colors
  /// Synchronised output, which shows a frame as a whole (private mode 2026).
  package var synchronizes = false
  /// Clusters of scalars are treated as one character (private mode 2027).
  package var knowsClusters = false
  /// The kinds of clusters that are treated as one character, according to a measurement.
  package var joinedClusters: CharacterWidth.Kinds = []
  /// The version of Unicode up to which the widths of scalars match the table, according to a measurement.
  package var unicodeVersion = CharacterWidth.knownVersion
  /// The kinds of clusters that are written as a whole.
  var wholeClusters: CharacterWidth.Kinds { knowsClusters ? .all : joinedClusters }
  /// Characters can be repeated (REP).
  package var repeats = false
  /// Erased cells get the background colour.
  package var erasesWithColor = false
  /// Links, and underlines of several shapes and colours, are supported.
  package var decorates = false
  /// Rows can be scrolled (SU and SD), which the Linux console and early terminals do not support.
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

  /// Creates the capabilities from the environment variables `TERM`, `COLORTERM` and `NO_COLOR`.
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

  /// Updates the capabilities according to the name and version that a terminal reports.
  package mutating func note(version text: String) {
    let known = ["xterm", "tmux", "kitty", "foot", "wezterm", "contour", "ghostty", "vte"]
    let name = text.lowercased()
    guard known.contains(where: { name.hasPrefix($0) }) else { return }
    repeats = true
    erasesWithColor = true
    // xterm supports neither links nor styled underlines, and tmux supports them from version 3.4 on.
    decorates = !name.hasPrefix("xterm") && !(name.hasPrefix("tmux") && Self.number(in: name) < (3, 4))
  }

  /// Returns the major and minor version.
  private static func number(in text: String) -> (Int, Int) {
    let parts = text.drop { !$0.isNumber }.split(separator: ".")
    let numbers = parts.map { Int($0.prefix { $0.isNumber }) ?? 0 }
    return (numbers.first ?? 0, numbers.count > 1 ? numbers[1] : 0)
  }
}

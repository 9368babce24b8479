// SPDX-License-Identifier: Apache-2.0

/// Formatting of text for people.
enum Text {
  /// Formats a duration with a suitable unit.
  static func duration(_ nanoseconds: Int64) -> String {
    let value = Double(nanoseconds)
    switch nanoseconds {
    case ..<1000: return "\(max(0, nanoseconds)) ns"
    case ..<1_000_000: return "\(tenths(value / 1e3)) µs"
    case ..<1_000_000_000: return "\(tenths(value / 1e6)) ms"
    default: return "\(tenths(value / 1e9)) s"
    }
  }

  private static func tenths(_ value: Double) -> String {
    let scaled = Int((value * 10).rounded())
    return "\(scaled / 10).\(scaled % 10)"
  }

  /// Formats rows with aligned columns.
  static func table(_ rows: [[String]], rightAligned: Set<Int> = []) -> [String] {
    // Escaped before they are measured.
    let rows = rows.map { $0.map(ForeignText.shown) }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        line += rightAligned.contains(column) ? space + cell : cell + space
        line += "  "
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}

extension Text {
  /// Shortens a text in the middle, so that a name's beginning and a place's end remain.
  static func shortened(_ text: String, _ width: Int) -> String {
    let count = text.count
    guard count > width else { return text }
    guard width > 1 else { return String(text.prefix(max(0, width))) }
    let tail = min(width - 1, max((width - 1) / 2, min(20, (width - 1) * 3 / 4)))
    return "\(text.prefix(width - 1 - tail))…\(text.suffix(tail))"
  }

  /// Formats a growing duration, without digits that change too fast to read.
  static func coarse(_ nanoseconds: Int64) -> String {
    let seconds = nanoseconds / 1_000_000_000
    switch seconds {
    case ..<1: return "\(nanoseconds / 100_000_000 * 100) ms"
    case ..<120: return "\(seconds) s"
    case ..<7200: return "\(seconds / 60) min"
    default: return "\(seconds / 3600) h"
    }
  }

  /// Formats a number with thousands separators.
  static func grouped(_ number: Int) -> String {
    var text = ""
    for (place, digit) in "\(number)".reversed().enumerated() {
      if place > 0, place % 3 == 0, digit != "-" { text.append(",") }
      text.append(digit)
    }
    return String(text.reversed())
  }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopHTTP

/// The display of transfers: on a terminal a redrawn line for each, and a line when one ends.
final class Display {
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var lines: [String]
  private var isDrawn = false

  init(_ names: [String]) { lines = names }

  func show(_ number: Int, _ text: String) {
    lines[number] = text
    guard isTerminal else { return }
    // Moves to the first line, and redraws every line.
    var screen = isDrawn ? "\u{1b}[\(lines.count)A" : ""
    for line in lines { screen += "\r\u{1b}[K\(line)\n" }
    isDrawn = true
    write(screen)
  }

  func end(_ number: Int, _ text: String) {
    if isTerminal { show(number, text) } else { write(text + "\n") }
  }

  private func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

/// Returns "[=====>    ]  42 % of 1.3 MiB", or only the received size if the total is unknown.
func bar(_ progress: HTTP.Progress) -> String {
  guard let total = progress.total, total > 0 else { return size(progress.received) }
  let share = min(1, Double(progress.received) / Double(total))
  let width = 30
  let filled = Int(share * Double(width))
  let line = String(repeating: "=", count: filled) + (filled < width ? ">" : "")
  let percent = String(Int(share * 100))
  return "[\(line)\(String(repeating: " ", count: width + 1 - line.count - (filled < width ? 0 : 1)))] "
    + String(repeating: " ", count: 3 - percent.count) + "\(percent) % of \(size(total))"
}

func size(_ bytes: Int64) -> String {
  var (value, unit) = (Double(bytes), 0)
  while value >= 1024, unit < 4 {
    value /= 1024
    unit += 1
  }
  let text = unit == 0 ? "\(bytes)" : "\(Int(value * 10) / 10).\(Int(value * 10) % 10)"
  return "\(text) \(["bytes", "KiB", "MiB", "GiB", "TiB"][unit])"
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay
import RunLoopTransactions

/// A line of the log, which a worker reads from the file, colors and draws.
struct LineContent: NodeContent {
  let file: LogFile
  let line: Int
  /// The first visible column.
  let column: Int

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    let text = Self.printable(file.line(line))
    guard !cancellation.isCancelled else { return }
    var x = -column
    for (word, style) in Self.coloured(text) { x = canvas.draw(word, at: Point(x: x, y: 0), style: style) }
  }

  /// Returns the text of a line's bytes: tabs become spaces, color sequences are removed, and other control
  /// characters are replaced by a visible one.
  static func printable(_ bytes: [UInt8]) -> String {
    var text = ""
    var isInSequence = false
    var bytes = bytes
    if bytes.last == 0x0D { bytes.removeLast() }
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar.value {
      case _ where isInSequence: isInSequence = !(0x40...0x7E).contains(scalar.value) || scalar == "["
      case 0x1B: isInSequence = true
      case 0x09: repeat { text.append(" ") } while text.count % 8 != 0
      case 0..<0x20, 0x7F..<0xA0: text.append("\u{FFFD}")
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// Splits a line into words with their styles.
  static func coloured(_ text: String) -> [(Substring, Style)] {
    var parts: [(Substring, Style)] = []
    var level = Style.plain
    var rest = text[...]
    while !rest.isEmpty {
      let word = rest.prefix { $0.isLetter }
      guard !word.isEmpty else {
        let other = rest.prefix { !$0.isLetter }
        parts.append((other, level))
        rest = rest.dropFirst(other.count)
        continue
      }
      if let style = levels[word.uppercased()] { level = style }
      parts.append((word, level))
      rest = rest.dropFirst(word.count)
    }
    return parts
  }

  /// The styles of log levels, which apply to the rest of the line.
  private static let levels: [String: Style] = [
    "FATAL": Style(foreground: .red, attributes: .bold), "CRITICAL": Style(foreground: .red, attributes: .bold),
    "ERROR": Style(foreground: .red), "WARNING": Style(foreground: .yellow), "WARN": Style(foreground: .yellow),
    "DEBUG": Style(attributes: .dim), "TRACE": Style(attributes: .dim),
  ]
}

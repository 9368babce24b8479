// SPDX-License-Identifier: Apache-2.0

/// Parses a literal in Swift syntax.
struct LiteralReader {
  private let text: [Character]
  private var position = 0

  /// Parses a text that consists of one literal.
  static func read(_ text: String) throws(LiteralError) -> Literal {
    var reader = LiteralReader(text: Array(text))
    let literal = try reader.literal()
    reader.skipSpace()
    guard reader.position == reader.text.count else { throw reader.unexpected("the end") }
    return literal
  }

  private init(text: [Character]) { self.text = text }

  private mutating func literal() throws(LiteralError) -> Literal {
    skipSpace()
    switch next {
    case "[":
      position += 1
      return .list(try arguments(until: "]").map(\.value))
    case "-": return .number(try number())
    case let digit? where digit.isNumber: return .number(try number())
    default: break
    }
    let name = word()
    switch name {
    case "": throw unexpected("a value")
    case "true": return .bool(true)
    case "false": return .bool(false)
    default: break
    }
    guard next == "(" else { return .call(name) }
    position += 1
    return .call(name, try arguments(until: ")"))
  }

  /// Parses the arguments up to and including the closing bracket.
  private mutating func arguments(until close: Character) throws(LiteralError) -> [Literal.Argument] {
    var arguments: [Literal.Argument] = []
    skipSpace()
    while next != close {
      arguments.append(try argument())
      skipSpace()
      if next == "," {
        position += 1
        skipSpace()
      } else if next != close {
        throw unexpected("a comma or \(close)")
      }
    }
    position += 1
    return arguments
  }

  private mutating func argument() throws(LiteralError) -> Literal.Argument {
    let start = position
    let label = word()
    if !label.isEmpty, next == ":" {
      position += 1
      return Literal.Argument(label, try literal())
    }
    position = start
    return Literal.Argument(nil, try literal())
  }

  private mutating func number() throws(LiteralError) -> Int {
    let start = position
    if next == "-" { position += 1 }
    while let digit = next, digit.isASCII, digit.isNumber { position += 1 }
    guard let number = Int(String(text[start..<position])) else { throw unexpected("a number") }
    return number
  }

  /// Parses a name, including the leading dot of an enumeration's case.
  private mutating func word() -> String {
    let start = position
    if next == "." { position += 1 }
    while let letter = next, letter.isASCII, letter.isLetter { position += 1 }
    return String(text[start..<position])
  }

  private var next: Character? { position < text.count ? text[position] : nil }

  private mutating func skipSpace() {
    while let space = next, space.isWhitespace { position += 1 }
  }

  private func unexpected(_ expected: String) -> LiteralError {
    let found = position < text.count ? String(text[position...].prefix(20)) : "the end"
    return LiteralError("\(found) instead of \(expected)")
  }
}

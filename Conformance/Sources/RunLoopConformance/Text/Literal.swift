// SPDX-License-Identifier: Apache-2.0

/// A value in Swift syntax, for printing and parsing programs.
indirect enum Literal: Hashable {
  case number(Int)
  case bool(Bool)
  case list([Literal])
  /// A call of an initializer, or a case of an enumeration; a case without associated values has no arguments.
  case call(String, [Argument] = [])

  struct Argument: Hashable {
    var label: String?
    var value: Literal

    init(_ label: String? = nil, _ value: Literal) {
      self.label = label
      self.value = value
    }
  }
}

extension Literal {
  /// The literal on one line.
  var text: String {
    switch self {
    case .number(let number): String(number)
    case .bool(let bool): String(bool)
    case .list(let elements): "[" + elements.map(\.text).joined(separator: ", ") + "]"
    case .call(let name, let arguments):
      arguments.isEmpty && name.hasPrefix(".")
        ? name : name + "(" + arguments.map(\.text).joined(separator: ", ") + ")"
    }
  }

  /// Returns the literal on as many lines as necessary, within `width` if possible, in the format of `swift format`.
  ///
  /// The first line begins after `used` characters of a line with `indentation`.
  func layout(width: Int, indentation: Int, used: Int) -> String {
    let line = text
    guard used + line.count > width else { return line }
    let margin = "\n" + String(repeating: " ", count: indentation + 2)
    switch self {
    case .number, .bool: return line
    case .list(let elements):
      let lines = Self.fill(elements, width: width - 1, indentation: indentation + 2)
      let comma = elements.count > 1 ? "," : ""
      return "[" + lines.map { margin + $0 }.joined(separator: ",") + comma + margin.dropLast(2) + "]"
    case .call(let name, let arguments):
      let lines = arguments.map { argument in
        let label = argument.label.map { $0 + ": " } ?? ""
        return label
          + argument.value.layout(width: width - 1, indentation: indentation + 2, used: indentation + 2 + label.count)
      }
      return name + "(" + lines.map { margin + $0 }.joined(separator: ",") + ")"
    }
  }

  /// Returns the lines of a list, with as many elements on a line as fit.
  private static func fill(_ elements: [Literal], width: Int, indentation: Int) -> [String] {
    var lines: [String] = []
    var mayTakeMore = false
    for element in elements {
      let line = element.text
      let fits = indentation + line.count <= width
      if mayTakeMore, fits, indentation + lines[lines.count - 1].count + 2 + line.count <= width {
        lines[lines.count - 1] += ", " + line
      } else {
        lines.append(element.layout(width: width, indentation: indentation, used: indentation))
      }
      mayTakeMore = fits
    }
    return lines
  }
}

extension Literal.Argument {
  fileprivate var text: String { (label.map { $0 + ": " } ?? "") + value.text }
}

/// A type whose values can be written as literals.
protocol LiteralConvertible {
  var literal: Literal { get }
  init(_ literal: Literal) throws(LiteralError)
}

/// An error in the text of a program.
package struct LiteralError: Error, Hashable, CustomStringConvertible {
  package var description: String

  init(_ description: String) { self.description = description }

  static func unexpected(_ literal: Literal, insteadOf expected: String) -> LiteralError {
    LiteralError("\(literal.text) instead of \(expected)")
  }
}

extension Int: LiteralConvertible {
  var literal: Literal { .number(self) }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .number(let number) = literal else { throw .unexpected(literal, insteadOf: "a number") }
    self = number
  }
}

extension Bool: LiteralConvertible {
  var literal: Literal { .bool(self) }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .bool(let bool) = literal else { throw .unexpected(literal, insteadOf: "true or false") }
    self = bool
  }
}

extension Array: LiteralConvertible where Element: LiteralConvertible {
  var literal: Literal { .list(map(\.literal)) }

  init(_ literal: Literal) throws(LiteralError) {
    guard case .list(let literals) = literal else { throw .unexpected(literal, insteadOf: "a list") }
    self = []
    for literal in literals { append(try Element(literal)) }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A JSON document.
indirect enum JSON: Sendable {
  case null
  case bool(Bool)
  case int(Int)
  case text(String)
  case list([JSON])
  case object([(String, JSON)])

  static func optional(_ text: String?) -> JSON { text.map { .text($0) } ?? .null }
  static func optional(_ number: Int?) -> JSON { number.map { .int($0) } ?? .null }

  /// The document on a single line.
  var line: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .int(let value): "\(value)"
    case .text(let value): ForeignText.quoted(value)
    case .list(let values): "[" + values.map(\.line).joined(separator: ", ") + "]"
    case .object(let members):
      "{" + members.map { "\(ForeignText.quoted($0.0)): \($0.1.line)" }.joined(separator: ", ") + "}"
    }
  }
}

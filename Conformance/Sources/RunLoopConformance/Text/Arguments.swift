// SPDX-License-Identifier: Apache-2.0

/// The arguments of a call, for writing or for reading one by one.
struct Arguments {
  private(set) var all: [Literal.Argument] = []
  private var name = ""

  init() {}

  mutating func add(_ label: String?, _ value: some LiteralConvertible) {
    all.append(Literal.Argument(label, value.literal))
  }

  mutating func add<Value: LiteralConvertible & Equatable>(_ label: String?, _ value: Value, unless usual: Value) {
    if value != usual { add(label, value) }
  }
}

extension Arguments {
  init(of literal: Literal, _ name: String) throws(LiteralError) {
    guard case .call(name, let arguments) = literal else { throw .unexpected(literal, insteadOf: name) }
    self.name = name
    self.all = arguments
  }

  /// Takes the next argument if it has this label.
  mutating func take<Value: LiteralConvertible>(_ label: String?) throws(LiteralError) -> Value? {
    guard let first = all.first, first.label == label else { return nil }
    all.removeFirst()
    return try Value(first.value)
  }

  /// Takes the next argument, which must have this label.
  mutating func require<Value: LiteralConvertible>(_ label: String?) throws(LiteralError) -> Value {
    guard let value: Value = try take(label) else {
      throw LiteralError("\(name) without \(label ?? "its value")")
    }
    return value
  }

  /// Throws an error if arguments are left.
  func end() throws(LiteralError) {
    if let label = all.first?.label { throw LiteralError("\(name) with \(label)") }
    if let value = all.first?.value { throw LiteralError("\(name) with \(value.text)") }
  }
}

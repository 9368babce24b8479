// SPDX-License-Identifier: Apache-2.0

/// The rules for unwinding a frame at one address of a function.
package struct FrameRules: Sendable {
  /// The stack pointer before the call of the function, known as the canonical frame address.
  enum Base: Sendable, Equatable {
    case register(Int, Int64)
    case expression([UInt8])
  }

  /// The location of the caller's value of a register.
  enum Rule: Sendable, Equatable {
    case undefined
    case same
    /// In memory, at this offset from the base.
    case at(Int64)
    /// The value is the base address plus this offset.
    case value(Int64)
    case register(Int)
    case atExpression([UInt8])
    case valueExpression([UInt8])
  }

  /// The address range of the function.
  let code: Range<UInt64>
  let isSignalFrame: Bool
  let returnColumn: Int
  let base: Base
  let rules: [Int: Rule]

  /// Finds the rules for an address; fails if there are none or they are invalid.
  ///
  /// - Parameter address: The address of an instruction, or any byte within it.
  init?(at address: UInt64, in memory: some ReadableMemory) {
    guard let place = memory.frameDescription(of: address),
      let description = try? FrameDescription(at: place, in: memory), description.code.contains(address),
      let row = try? FrameProgram.row(at: address, of: description), let base = row.base
    else { return nil }
    code = description.code
    isSignalFrame = description.common.isSignalFrame
    returnColumn = description.common.returnColumn
    self.base = base
    rules = row.rules
  }
}

/// Runs the instructions that build a function's table of rules, to compute a single row.
struct FrameProgram {
  typealias Malformed = ByteReader.Malformed

  struct Row {
    var base: FrameRules.Base?
    var rules: [Int: FrameRules.Rule] = [:]
  }

  private let common: CommonFrameInformation
  private var row = Row()
  private var initial = Row()
  private var remembered: [Row] = []
  private var location: UInt64

  /// Compilers do not nest more deeply.
  private static let mostRemembered = 64
  /// Processors do not have more registers.
  private static let mostRegisters = 1024

  static func row(at address: UInt64, of description: FrameDescription) throws(Malformed) -> Row {
    var program = FrameProgram(common: description.common, location: description.code.lowerBound)
    try program.run(description.common.instructions, until: .max)
    program.initial = program.row
    program.location = description.code.lowerBound
    try program.run(description.instructions, until: address)
    return program.row
  }

  private init(common: CommonFrameInformation, location: UInt64) {
    self.common = common
    self.location = location
  }

  /// Executes the instructions that apply up to an address.
  private mutating func run(_ instructions: [UInt8], until address: UInt64) throws(Malformed) {
    var reader = ByteReader(instructions)
    while !reader.isAtEnd {
      let code = try reader.byte()
      switch code >> 6 {
      case 1: advance(UInt64(code & 0x3f))
      case 2: try set(Int(code & 0x3f), .at(factored(Int64(bitPattern: reader.unsignedLEB()))))
      case 3: restore(Int(code & 0x3f))
      default: try extended(code, &reader)
      }
      if location > address { return }
    }
  }

  private mutating func advance(_ steps: UInt64) { location = location &+ steps &* common.codeAlignment }
  private func factored(_ number: Int64) -> Int64 { number &* common.dataAlignment }
  private mutating func set(_ register: Int, _ rule: FrameRules.Rule) {
    // Limits the size of a row, because it is copied when it is remembered.
    if register < FrameProgram.mostRegisters { row.rules[register] = rule }
  }
  private mutating func restore(_ register: Int) { row.rules[register] = initial.rules[register] }

  private func register(_ reader: inout ByteReader) throws(Malformed) -> Int {
    try Int(clamping: reader.unsignedLEB())
  }

  private mutating func extended(_ code: UInt8, _ reader: inout ByteReader) throws(Malformed) {
    switch code {
    case 0x00: break
    case 0x01: location = try reader.pointer(common.pointerEncoding)
    case 0x02: try advance(reader.number(1))
    case 0x03: try advance(reader.number(2))
    case 0x04: try advance(reader.number(4))
    case 0x0a:
      guard remembered.count < FrameProgram.mostRemembered else { throw Malformed() }
      remembered.append(row)
    case 0x0b:
      guard let last = remembered.popLast() else { throw Malformed() }
      row = last
    case 0x0c...0x0f, 0x12, 0x13: try setBase(code, &reader)
    // The size of call arguments, and signed return addresses on arm64. Neither affects the frame.
    case 0x2e: _ = try reader.unsignedLEB()
    case 0x2d: break
    default: try setRule(code, &reader)
    }
  }

  private mutating func setBase(_ code: UInt8, _ reader: inout ByteReader) throws(Malformed) {
    switch code {
    case 0x0c: row.base = try .register(register(&reader), Int64(bitPattern: reader.unsignedLEB()))
    case 0x12: row.base = try .register(register(&reader), factored(reader.signedLEB()))
    case 0x0f: row.base = try .expression(reader.take(reader.unsignedLEB()))
    default:
      guard case .register(let number, let offset) = row.base else { throw Malformed() }
      switch code {
      case 0x0d: row.base = try .register(register(&reader), offset)
      case 0x0e: row.base = try .register(number, Int64(bitPattern: reader.unsignedLEB()))
      default: row.base = try .register(number, factored(reader.signedLEB()))
      }
    }
  }

  private mutating func setRule(_ code: UInt8, _ reader: inout ByteReader) throws(Malformed) {
    let number = try register(&reader)
    switch code {
    case 0x05: try set(number, .at(factored(Int64(bitPattern: reader.unsignedLEB()))))
    case 0x06: restore(number)
    case 0x07: set(number, .undefined)
    case 0x08: set(number, .same)
    case 0x09: try set(number, .register(register(&reader)))
    case 0x10: try set(number, .atExpression(reader.take(reader.unsignedLEB())))
    case 0x11: try set(number, .at(factored(reader.signedLEB())))
    case 0x14: try set(number, .value(factored(Int64(bitPattern: reader.unsignedLEB()))))
    case 0x15: try set(number, .value(factored(reader.signedLEB())))
    case 0x16: try set(number, .valueExpression(reader.take(reader.unsignedLEB())))
    default: throw Malformed()
    }
  }
}

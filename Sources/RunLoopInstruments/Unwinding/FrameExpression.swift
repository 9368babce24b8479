// SPDX-License-Identifier: Apache-2.0

/// A DWARF expression for a location in an unwind table, as used for linkage stubs and signal handlers.
struct FrameExpression {
  typealias Malformed = ByteReader.Malformed

  /// The register and memory access of an expression.
  struct Context {
    let register: (Int) -> UInt64?
    let word: (UInt64, Int) -> UInt64?
  }

  private var stack: [UInt64]
  private let context: Context
  private static let deepest = 64
  private static let mostSteps = 1000

  /// Evaluates an expression; returns nil if it is invalid or depends on unknown values.
  static func value(_ bytes: [UInt8], startingWith first: UInt64?, _ context: Context) -> UInt64? {
    var expression = FrameExpression(stack: first.map { [$0] } ?? [], context: context)
    return try? expression.run(bytes)
  }

  private mutating func run(_ bytes: [UInt8]) throws(Malformed) -> UInt64 {
    var reader = ByteReader(bytes)
    var steps = 0
    while !reader.isAtEnd {
      steps += 1
      // Limits the steps, because a branch may go backward.
      guard steps < FrameExpression.mostSteps, stack.count < FrameExpression.deepest else { throw Malformed() }
      let code = try reader.byte()
      switch code {
      case 0x30...0x4f: stack.append(UInt64(code - 0x30))
      case 0x50...0x6f: try stack.append(register(Int(code - 0x50)))
      case 0x70...0x8f: try stack.append(register(Int(code - 0x70)) &+ UInt64(bitPattern: reader.signedLEB()))
      case 0x92:
        let number = try Int(clamping: reader.unsignedLEB())
        try stack.append(register(number) &+ UInt64(bitPattern: reader.signedLEB()))
      case 0x03, 0x08...0x11: try constant(code, &reader)
      case 0x06, 0x94: try load(code == 0x06 ? 8 : Int(reader.byte()))
      case 0x12...0x16: try arrange(code, &reader)
      case 0x23: try stack.append(pop() &+ reader.unsignedLEB())
      case 0x28:
        let offset = try reader.signed(2)
        if try pop() != 0 { try reader.move(by: offset) }
      case 0x2f: try reader.move(by: reader.signed(2))
      case 0x96: break
      case 0x19, 0x1f, 0x20: try stack.append(one(code, pop()))
      default:
        let second = try pop()
        try stack.append(two(code, pop(), second))
      }
    }
    return try pop()
  }

  private mutating func pop() throws(Malformed) -> UInt64 {
    guard let last = stack.popLast() else { throw Malformed() }
    return last
  }

  private func register(_ number: Int) throws(Malformed) -> UInt64 {
    guard let value = context.register(number) else { throw Malformed() }
    return value
  }

  private mutating func load(_ size: Int) throws(Malformed) {
    guard [1, 2, 4, 8].contains(size), let value = try context.word(pop(), size) else { throw Malformed() }
    stack.append(value)
  }

  private mutating func constant(_ code: UInt8, _ reader: inout ByteReader) throws(Malformed) {
    switch code {
    case 0x03, 0x0e, 0x0f: try stack.append(reader.number(8))
    case 0x08: try stack.append(reader.number(1))
    case 0x09: try stack.append(UInt64(bitPattern: reader.signed(1)))
    case 0x0a: try stack.append(reader.number(2))
    case 0x0b: try stack.append(UInt64(bitPattern: reader.signed(2)))
    case 0x0c: try stack.append(reader.number(4))
    case 0x0d: try stack.append(UInt64(bitPattern: reader.signed(4)))
    case 0x10: try stack.append(reader.unsignedLEB())
    default: try stack.append(UInt64(bitPattern: reader.signedLEB()))
    }
  }

  /// Copies, drops or exchanges stack entries.
  private mutating func arrange(_ code: UInt8, _ reader: inout ByteReader) throws(Malformed) {
    switch code {
    case 0x13: _ = try pop()
    case 0x16:
      guard stack.count >= 2 else { throw Malformed() }
      stack.swapAt(stack.count - 1, stack.count - 2)
    default:
      let depth = code == 0x12 ? 0 : code == 0x14 ? 1 : Int(try reader.byte())
      guard depth < stack.count else { throw Malformed() }
      stack.append(stack[stack.count - 1 - depth])
    }
  }

  private func one(_ code: UInt8, _ value: UInt64) -> UInt64 {
    switch code {
    case 0x19: Int64(bitPattern: value).magnitude
    case 0x1f: 0 &- value
    default: ~value
    }
  }

  private func two(_ code: UInt8, _ first: UInt64, _ second: UInt64) throws(Malformed) -> UInt64 {
    let (left, right) = (Int64(bitPattern: first), Int64(bitPattern: second))
    switch code {
    case 0x1a: return first & second
    case 0x1c: return first &- second
    case 0x1e: return first &* second
    case 0x21: return first | second
    case 0x22: return first &+ second
    case 0x24: return first << second
    case 0x25: return first >> second
    case 0x26: return UInt64(bitPattern: left >> right)
    case 0x27: return first ^ second
    case 0x29: return left == right ? 1 : 0
    case 0x2a: return left >= right ? 1 : 0
    case 0x2b: return left > right ? 1 : 0
    case 0x2c: return left <= right ? 1 : 0
    case 0x2d: return left < right ? 1 : 0
    case 0x2e: return left != right ? 1 : 0
    // Division does not occur in unwind tables.
    default: throw Malformed()
    }
  }
}

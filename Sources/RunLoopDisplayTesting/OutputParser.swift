// SPDX-License-Identifier: Apache-2.0

/// A control sequence that was written to a terminal.
struct OutputSequence: CustomStringConvertible {
  /// The private marker, the intermediate and the final character.
  var name: String
  /// The first number of each parameter, or nil if it is omitted.
  var numbers: [Int?] { parameters.map { $0.first.flatMap(\.self) } }
  /// The parameters, which consist of one or more numbers separated by colons, with nil for omitted numbers.
  var parameters: [[Int?]]

  subscript(index: Int) -> Int? { index < numbers.count ? numbers[index] : nil }

  var description: String { "CSI \(numbers.map { $0.map(String.init) ?? "" }.joined(separator: ";")) \(name)" }
}

/// A parser that splits terminal output into characters and sequences.
struct OutputParser {
  enum Item {
    case nothing
    case scalar(Unicode.Scalar)
    case control(UInt8)
    case escape(UInt8)
    case sequence(OutputSequence)
    /// An operating system command (OSC).
    case command(String)
    case error(String)
  }

  private enum State { case ground, escape, sequence, command, commandEscape }

  private var state = State.ground
  private var bytes: [UInt8] = []

  mutating func take(_ byte: UInt8) -> Item {
    if byte == 0x18 {
      self = OutputParser()
      return .control(byte)
    }
    switch state {
    case .ground:
      if byte == 0x1B {
        state = .escape
        return bytes.isEmpty ? .nothing : .error("a character was cut off")
      }
      if byte < 0x20 || byte == 0x7F { return .control(byte) }
      return scalar(byte)
    case .escape:
      state = byte == 0x5B ? .sequence : byte == 0x5D ? .command : .ground
      bytes = []
      return state == .ground ? .escape(byte) : .nothing
    case .command:
      guard byte != 0x1B else {
        state = .commandEscape
        return .nothing
      }
      bytes.append(byte)
      return byte < 0x20 ? .error("byte \(byte) in a command") : .nothing
    case .commandEscape:
      defer { self = OutputParser() }
      return byte == 0x5C ? .command(String(decoding: bytes, as: UTF8.self)) : .error("a command without its end")
    case .sequence:
      guard (0x20...0x7E).contains(byte), bytes.count < 64 else {
        self = OutputParser()
        return .error("byte \(byte) in a sequence")
      }
      bytes.append(byte)
      guard byte >= 0x40 else { return .nothing }
      state = .ground
      defer { bytes = [] }
      return .sequence(sequence)
    }
  }

  private mutating func scalar(_ byte: UInt8) -> Item {
    bytes.append(byte)
    let first = bytes[0]
    let length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
    guard bytes.count == length else { return .nothing }
    defer { bytes = [] }
    guard let text = String(validating: bytes, as: UTF8.self), let scalar = text.unicodeScalars.first else {
      return .error("bytes \(bytes) are no character")
    }
    return .scalar(scalar)
  }

  private var sequence: OutputSequence {
    let isMark = { (byte: UInt8) in (0x3C...0x3F).contains(byte) }
    let isNumber = { (byte: UInt8) in (0x30...0x3B).contains(byte) }
    let name = bytes.filter { !isNumber($0) }
    let numbers = bytes.drop(while: isMark).prefix(while: isNumber)
    let parts = numbers.isEmpty ? [] : numbers.split(separator: 0x3B, omittingEmptySubsequences: false)
    return OutputSequence(
      name: String(decoding: name, as: UTF8.self),
      parameters: parts.map { part in
        part.split(separator: 0x3A, omittingEmptySubsequences: false).map { Int(String(decoding: $0, as: UTF8.self)) }
      })
  }
}

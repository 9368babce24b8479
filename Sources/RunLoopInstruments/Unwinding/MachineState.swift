// SPDX-License-Identifier: Apache-2.0

/// The known registers of a thread at one point of its stack.
package struct MachineState: Sendable, Hashable {
  package var programCounter: UInt64
  package var stackPointer: UInt64
  /// The other known registers, by their DWARF numbers.
  package var others: [Int: UInt64]

  package init(programCounter: UInt64, stackPointer: UInt64, others: [Int: UInt64] = [:]) {
    self.programCounter = programCounter
    self.stackPointer = stackPointer
    self.others = others
  }
}

/// The DWARF numbers of the registers that unwinding depends on.
struct RegisterNumbers: Sendable {
  let stackPointer: Int
  let framePointer: Int
  /// The register in which a call stores its return address, or nil if it is on the stack.
  let link: Int?
  /// The callee-saved registers.
  let preserved: Set<Int>

  static let x86 = RegisterNumbers(stackPointer: 7, framePointer: 6, link: nil, preserved: [3, 6, 12, 13, 14, 15])
  static let arm64 = RegisterNumbers(stackPointer: 31, framePointer: 29, link: 30, preserved: Set(19...29))

  /// Fails for an unknown processor.
  init?(_ instructions: InstructionSet) {
    switch instructions {
    case .x86: self = .x86
    case .arm64: self = .arm64
    case .unknown: return nil
    }
  }

  private init(stackPointer: Int, framePointer: Int, link: Int?, preserved: Set<Int>) {
    self.stackPointer = stackPointer
    self.framePointer = framePointer
    self.link = link
    self.preserved = preserved
  }
}

/// A copy of the innermost part of a thread's stack.
package struct StackCopy: Sendable {
  let start: UInt64
  let bytes: [UInt8]
  /// Whether the thread may have continued since, so that memory outside the copy may have changed.
  let isPast: Bool

  package init(start: UInt64, bytes: [UInt8], isPast: Bool = false) {
    self.start = start
    self.bytes = bytes
    self.isPast = isPast
  }

  var end: UInt64 { start &+ UInt64(bytes.count) }

  func contains(_ address: UInt64) -> Bool { address >= start && address < end }

  func number(at address: UInt64, _ size: Int) -> UInt64? {
    guard contains(address), UInt64(size) <= end - address else { return nil }
    return bytes.number(Int(address - start), size)
  }

  /// Returns the words from an address on.
  func words(from address: UInt64) -> [UInt64] {
    guard contains(address) else { return [] }
    return stride(from: Int(address - start), to: bytes.count - 7, by: 8).map { bytes.number($0, 8) }
  }
}

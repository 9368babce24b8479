// SPDX-License-Identifier: Apache-2.0

/// The instruction set of code.
package enum InstructionSet: Sendable {
  case x86
  case arm64
  /// An instruction set whose calls are not recognized.
  case unknown

  /// The instruction set of this machine.
  package static var native: InstructionSet {
    #if arch(x86_64)
      .x86
    #elseif arch(arm64)
      .arm64
    #else
      .unknown
    #endif
  }
}

/// Detection of functions that end with a jump to another function.
enum TailCall {
  /// The maximum number of stubs to read per function.
  private static let mostStubs = 64

  /// Returns whether a function's code jumps to another function; only the beginning is read, because such functions
  /// are short.
  static func leads(from function: UInt64, to other: UInt64, in memory: some ReadableMemory) -> Bool {
    let code = memory.bytes(at: function, count: 2048)
    var stubs = 0
    /// Whether a jump leads to the other function, directly or through a linkage stub.
    func isOther(_ target: UInt64) -> Bool {
      if target == other { return true }
      // A jump within the function does not lead to a stub.
      guard target < function || target - function >= UInt64(code.count) else { return false }
      // Limits the reads, because invented code could consist of such jumps.
      stubs += 1
      return stubs <= mostStubs && LinkageStub.entry(target, memory) == other
    }
    switch memory.instructions {
    case .x86:
      for place in 0..<max(0, code.count - 5) {
        // A jump, or a conditional jump, which has a prefix byte.
        let isJump = code[place] == 0xe9 || (place > 0 && code[place - 1] == 0x0f && code[place] & 0xf0 == 0x80)
        guard isJump else { continue }
        let offset = Int64(Int32(truncatingIfNeeded: code.number(place + 1, 4)))
        let target = function &+ UInt64(place + 5) &+ UInt64(bitPattern: offset)
        // Any byte can look like a jump, but most of them would not lead to code.
        if target == other || code[place] == 0xe9 && memory.isCode(target) && isOther(target) { return true }
      }
    case .arm64:
      for place in stride(from: 0, to: code.count - 3, by: 4) {
        let word = code.word(place)
        if let target = word.branchTarget(from: function &+ UInt64(place)), isOther(target) { return true }
      }
    case .unknown: break
    }
    return false
  }
}

/// A stub for calling a function that is in another library or too far away.
enum LinkageStub {
  /// Returns the function that a call to an address reaches, following a stub at the address.
  static func entry(_ address: UInt64, _ memory: some ReadableMemory) -> UInt64 {
    switch memory.instructions {
    case .x86:
      var code = memory.bytes(at: address, count: 16)
      var place = address
      if code.starts(with: [0xf3, 0x0f, 0x1e, 0xfa]) {
        code.removeFirst(4)
        place &+= 4
      }
      if code.first == 0xf2 {
        code.removeFirst()
        place &+= 1
      }
      guard code.count >= 6, code[0] == 0xff, code[1] == 0x25 else { return address }
      return memory.word(at: place &+ 6 &+ code.offset(2)) ?? address
    case .arm64:
      let code = memory.bytes(at: address, count: 20)
      var words = stride(from: 0, to: code.count - 3, by: 4).map { code.word($0) }[...]
      var place = address
      // A landing pad for indirect jumps.
      if words.first == 0xd503_245f {
        words = words.dropFirst()
        place &+= 4
      }
      // `adrp x16`, followed by `ldr x17` from the address table or by `add x16`.
      guard let first = words.first, first & 0x9f00_001f == 0x9000_0010, let second = words.dropFirst().first else {
        return address
      }
      let high = Int64(Int32(bitPattern: (first >> 5 & 0x7_ffff) << 13) >> 11)
      let pages = high | Int64(first >> 29 & 3)
      let page = (place & ~0xfff) &+ UInt64(bitPattern: pages << 12)
      let offset = UInt64(second >> 10 & 0xfff)
      if second & 0xffc0_03ff == 0xf940_0211, words.contains(0xd61f_0220) {
        return memory.word(at: page &+ offset * 8) ?? address
      }
      if second & 0xffc0_03ff == 0x9100_0210, words.dropFirst(2).first == 0xd61f_0200 { return page &+ offset }
      return address
    case .unknown: return address
    }
  }
}

/// The frame layout of a function with a frame pointer.
struct FrameLayout {
  /// The number of words between the frame pointer and the end of the stack during calls.
  let words: Int

  /// Reads the beginning of a function; fails if it does not set up a frame pointer there.
  init?(of function: UInt64, in memory: some ReadableMemory) {
    switch memory.instructions {
    case .x86:
      guard let words = FrameLayout.wordsOfX86(memory.bytes(at: function, count: 32)) else { return nil }
      self.words = words
    case .arm64:
      guard let prologue = ArmPrologue(of: function, in: memory), let frame = prologue.frame else { return nil }
      words = frame / 8
    case .unknown: return nil
    }
  }

  private static func wordsOfX86(_ bytes: [UInt8]) -> Int? {
    var code = bytes[...]
    // A landing pad for indirect calls.
    if code.starts(with: [0xf3, 0x0f, 0x1e, 0xfa]) { code = code.dropFirst(4) }
    guard code.starts(with: [0x55, 0x48, 0x89, 0xe5]) else { return nil }
    code = code.dropFirst(4)
    var words = 0
    while let first = code.first {
      if 0x50...0x57 ~= first {
        code = code.dropFirst()
      } else if first == 0x41, let second = code.dropFirst().first, 0x50...0x57 ~= second {
        code = code.dropFirst(2)
      } else {
        break
      }
      words += 1
    }
    let rest = Array(code)
    if rest.starts(with: [0x48, 0x83, 0xec]), rest.count >= 4 {
      words += Int(rest[3]) / 8
    } else if rest.starts(with: [0x48, 0x81, 0xec]), rest.count >= 7 {
      words += Int(rest.number(3, 4)) / 8
    }
    return words
  }

  /// Whether no instruction of a function moves the stack pointer by an amount known only at run time.
  ///
  /// If so, all its calls are made at the distance from the frame pointer that the beginning of the function implies.
  /// Bytes that merely look like such an instruction can cause a false negative.
  static func isFixed(_ function: Range<UInt64>, in memory: some ReadableMemory) -> Bool {
    // The range is untrusted, so its count may not fit into an `Int`.
    guard function.upperBound - function.lowerBound <= UInt64(FrameLayout.mostCode) else { return false }
    let code = memory.bytes(at: function.lowerBound, count: function.count)
    guard code.count == function.count else { return false }
    switch memory.instructions {
    case .x86: return !(0..<max(0, code.count - 2)).contains { FrameLayout.movesStackOfX86(code, $0) }
    case .arm64:
      return !stride(from: 0, to: code.count - 3, by: 4).contains { code.word($0).movesStack }
    case .unknown: return false
    }
  }

  /// The maximum length of a function to examine.
  private static let mostCode = 1 << 18

  private static func movesStackOfX86(_ code: [UInt8], _ place: Int) -> Bool {
    let (prefix, operation, form) = (code[place], code[place + 1], code[place + 2])
    switch operation {
    // `sub` and `mov` to the stack pointer, in both encodings.
    case 0x29, 0x89: return (prefix == 0x48 || prefix == 0x4c) && form & 0xc7 == 0xc4
    case 0x2b, 0x8b: return (prefix == 0x48 || prefix == 0x49) && form & 0xf8 == 0xe0
    // `and`, which aligns it.
    case 0x81, 0x83: return prefix == 0x48 && form == 0xe4
    default: return false
    }
  }

  /// The number of words from the stack pointer through the return address in a function without a frame pointer, or
  /// nil.
  static func wordsToReturnAddress(of function: UInt64, in memory: some ReadableMemory) -> Int? {
    switch memory.instructions {
    // The call itself pushes the return address.
    case .x86: 1
    case .arm64: ArmPrologue(of: function, in: memory).flatMap(\.link).map { $0 / 8 }
    case .unknown: nil
    }
  }
}

/// The stack operations at the beginning of an arm64 function.
private struct ArmPrologue {
  /// The number of bytes below the frame pointer, or nil without one.
  private(set) var frame: Int?
  /// The distance in bytes from the caller's stack pointer down to the return address, or nil if it stays in its
  /// register.
  private(set) var link: Int?

  init?(of function: UInt64, in memory: some ReadableMemory) {
    let code = memory.bytes(at: function, count: 64)
    guard code.count >= 4 else { return nil }
    var size = 0
    var linkFromEnd: Int?
    var frameFromEnd: Int?
    for place in stride(from: 0, to: code.count - 3, by: 4) {
      let word = code.word(place)
      if word & 0xff80_03ff == 0xd100_03ff {
        // sub sp, sp, #size
        size += Int(word >> 10 & 0xfff) << (word >> 22 & 1 == 1 ? 12 : 0)
      } else if word & 0xffc0_03e0 == 0xa980_03e0 {
        // stp a, b, [sp, #-size]!
        let offset = Int(Int32(bitPattern: word << 10) >> 25) * 8
        guard offset < 0 else { break }
        size -= offset
        if let index = word.placeOfLink { linkFromEnd = size - index * 8 }
      } else if word & 0xffc0_03e0 == 0xa900_03e0 {
        // stp a, b, [sp, #offset]
        let offset = Int(Int32(bitPattern: word << 10) >> 25) * 8
        if let index = word.placeOfLink { linkFromEnd = size - offset - index * 8 }
      } else if word & 0xffe0_0fff == 0xf800_0ffe {
        // str x30, [sp, #-size]!
        let offset = Int(Int32(bitPattern: word << 11) >> 23)
        guard offset < 0 else { break }
        size -= offset
        linkFromEnd = size
      } else if word & 0xffc0_03ff == 0xf900_03fe {
        // str x30, [sp, #offset]
        linkFromEnd = size - Int(word >> 10 & 0xfff) * 8
      } else if word & 0xff80_03ff == 0x9100_03fd {
        // add x29, sp, #offset, which is also how `mov x29, sp` is written
        frameFromEnd = size - Int(word >> 10 & 0xfff)
      } else if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 || word == 0xd65f_03c0 {
        // A call or return ends the prologue.
        break
      }
    }
    link = linkFromEnd
    frame = frameFromEnd.map { size - $0 }
  }
}

/// A call instruction before a return address, with its target.
struct CallInstruction {
  /// The called function, if the instruction contains it.
  let target: UInt64?

  /// Decodes the instruction before an address; fails if it is not a call.
  init?(before address: UInt64, in memory: some ReadableMemory) {
    guard address > 8, memory.isCode(address - 1) else { return nil }
    let code = memory.bytes(at: address - 8, count: 8)
    guard code.count == 8 else { return nil }
    switch memory.instructions {
    case .x86:
      if code[3] == 0xe8 {
        target = LinkageStub.entry(address &+ code.offset(4), memory)
      } else if code[2] == 0xff, code[3] == 0x15 {
        target = memory.word(at: address &+ code.offset(4))
      } else if CallInstruction.isIndirect(code) {
        target = nil
      } else {
        return nil
      }
    case .arm64:
      guard address & 3 == 0 else { return nil }
      let word = code.word(4)
      if word & 0xfc00_0000 == 0x9400_0000 {
        let steps = Int64(Int32(bitPattern: word << 6) >> 6)
        target = LinkageStub.entry(address &- 4 &+ UInt64(bitPattern: steps * 4), memory)
      } else if word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800 {
        // A call through a register; the second form uses a signed address.
        target = nil
      } else {
        return nil
      }
    case .unknown: return nil
    }
  }

  /// Whether the eight bytes end with an x86 call through a register or memory.
  private static func isIndirect(_ code: [UInt8]) -> Bool {
    // The opcode is 0xff. The middle bits of the next byte are 2, and its other bits determine the length of the rest.
    for (length, place) in [(2, 6), (3, 5), (4, 4), (6, 2), (7, 1)] where code[place] == 0xff {
      let form = code[place + 1]
      guard form & 0x38 == 0x10 else { continue }
      let hasBase = form & 7 == 4
      let size: Int
      switch form >> 6 {
      case 3: size = 2
      case 0: size = hasBase ? 3 : form & 7 == 5 ? 6 : 2
      case 1: size = hasBase ? 4 : 3
      default: size = hasBase ? 7 : 6
      }
      if size == length { return true }
    }
    return false
  }
}

extension [UInt8] {
  /// The signed 32-bit displacement at a place, sign-extended for adding to an address.
  fileprivate func offset(_ place: Int) -> UInt64 {
    UInt64(bitPattern: Int64(Int32(truncatingIfNeeded: number(place, 4))))
  }

  /// The arm64 instruction at a place.
  fileprivate func word(_ place: Int) -> UInt32 { UInt32(truncatingIfNeeded: number(place, 4)) }
}

extension UInt32 {
  /// The target of an arm64 jump that is not a call, or nil.
  fileprivate func branchTarget(from place: UInt64) -> UInt64? {
    let steps: Int64
    if self & 0xfc00_0000 == 0x1400_0000 {
      steps = Int64(Int32(bitPattern: self << 6) >> 6)
    } else if self & 0xff00_0010 == 0x5400_0000 || self & 0x7e00_0000 == 0x3400_0000 {
      // A conditional jump, or one that tests a register for zero.
      steps = Int64(Int32(bitPattern: self << 8) >> 13)
    } else {
      return nil
    }
    return place &+ UInt64(bitPattern: steps * 4)
  }

  /// Whether an arm64 instruction sets the stack pointer to a computed value.
  fileprivate var movesStack: Bool {
    // `add` or `sub` with a constant, from a register other than the stack pointer.
    if self & 0xbf80_001f == 0x9100_001f, self >> 5 & 31 != 31 { return true }
    return self & 0xbfe0_001f == 0x8b20_001f || self & 0xff80_001f == 0x9200_001f
  }

  /// The index of the return address register among the two that an arm64 instruction stores, or nil.
  fileprivate var placeOfLink: Int? { self & 31 == 30 ? 0 : self >> 10 & 31 == 30 ? 1 : nil }
}

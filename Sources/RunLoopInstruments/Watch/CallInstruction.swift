// SPDX-License-Identifier: Apache-2.0

/// What code consists of.
package enum InstructionSet: Sendable {
  case x86
  case arm64
  /// Another, in which no call is recognized.
  case unknown

  /// This machine's.
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

/// Whether a function jumps to another instead of calling it, as its last deed.
enum TailCall {
  /// The number of stubs that are read for one function.
  private static let mostStubs = 64

  /// Looks through the function's code; most that hand on to another are short.
  static func leads(from function: UInt64, to other: UInt64, in memory: some ReadableMemory) -> Bool {
    let code = memory.bytes(at: function, count: 2048)
    var stubs = 0
    /// Whether a jump leads to the other function, or to the stub by which another library's is reached.
    func isOther(_ target: UInt64) -> Bool {
      if target == other { return true }
      // A jump within the function is none to a stub.
      guard target < function || target - function >= UInt64(code.count) else { return false }
      // Each costs a read, and code that is made up could consist of such jumps.
      stubs += 1
      return stubs <= mostStubs && LinkageStub.entry(target, memory) == other
    }
    switch memory.instructions {
    case .x86:
      for place in 0..<max(0, code.count - 5) {
        // A jump, or one under a condition, which has a byte before.
        let isJump = code[place] == 0xe9 || (place > 0 && code[place - 1] == 0x0f && code[place] & 0xf0 == 0x80)
        guard isJump else { continue }
        let offset = Int64(Int32(truncatingIfNeeded: code.number(place + 1, 4)))
        let target = function &+ UInt64(place + 5) &+ UInt64(bitPattern: offset)
        // Any byte may look like a jump, and most do not lead to code.
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

/// A stub by which a program or library calls the function of another, or one that is too far away.
enum LinkageStub {
  /// Where the function begins that a call of an address leads to: the address, unless a stub is there.
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
      // The mark of a place that is jumped to through a register.
      if words.first == 0xd503_245f {
        words = words.dropFirst()
        place &+= 4
      }
      // adrp x16, and either of `ldr x17` from the table of addresses and `add x16`.
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

/// How a function that keeps a frame pointer lays its frame out.
struct FrameLayout {
  /// How many words stand between the frame pointer and the end of the stack while the function calls.
  let words: Int

  /// Looks at the beginning of a function's code; nil if it keeps no frame pointer, or does not begin with that.
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
    // The mark of a function that is called through a register.
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

  /// Whether no instruction of a function moves the end of the stack by what is known only when it runs: then all its
  /// calls are made so far from its frame pointer as its beginning says.
  ///
  /// Some bytes that look like such an instruction are none.
  static func isFixed(_ function: Range<UInt64>, in memory: some ReadableMemory) -> Bool {
    // The range is the process's own claim: its count need not fit into an Int.
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

  /// No function is looked at that is longer.
  private static let mostCode = 1 << 18

  private static func movesStackOfX86(_ code: [UInt8], _ place: Int) -> Bool {
    let (prefix, operation, form) = (code[place], code[place + 1], code[place + 2])
    switch operation {
    // `sub` and `mov` to the stack pointer, in both ways to write them.
    case 0x29, 0x89: return (prefix == 0x48 || prefix == 0x4c) && form & 0xc7 == 0xc4
    case 0x2b, 0x8b: return (prefix == 0x48 || prefix == 0x49) && form & 0xf8 == 0xe0
    // `and`, which aligns it.
    case 0x81, 0x83: return prefix == 0x48 && form == 0xe4
    default: return false
    }
  }

  /// How many words a function without a frame pointer has put on the stack up to its return address, with that; nil if
  /// that is not known.
  static func wordsToReturnAddress(of function: UInt64, in memory: some ReadableMemory) -> Int? {
    switch memory.instructions {
    // The call itself puts it there.
    case .x86: 1
    case .arm64: ArmPrologue(of: function, in: memory).flatMap(\.link).map { $0 / 8 }
    case .unknown: nil
    }
  }
}

/// What the beginning of a function of arm64 does with the stack.
private struct ArmPrologue {
  /// How many bytes stand below the frame pointer; nil: it keeps none.
  private(set) var frame: Int?
  /// How many bytes below the caller's end of the stack the return address is; nil: it stays in its register.
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
        // A call or the return: what comes now is no beginning.
        break
      }
    }
    link = linkFromEnd
    frame = frameFromEnd.map { size - $0 }
  }
}

/// Whether an address is one that a call returns to, and what was called.
struct CallInstruction {
  /// The function that was called, if the instruction says it.
  let target: UInt64?

  /// Looks at the instruction before an address; nil if it is no call.
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
        // Through a register; the second kind has its address signed.
        target = nil
      } else {
        return nil
      }
    case .unknown: return nil
    }
  }

  /// Whether the eight bytes end with a call of x86 through a register or through memory.
  private static func isIndirect(_ code: [UInt8]) -> Bool {
    // The operation is 0xff, and 2 stands in the middle of the byte after it, which says how long the rest is.
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
  /// The 32 bits at a place, as what is added to an address.
  fileprivate func offset(_ place: Int) -> UInt64 {
    UInt64(bitPattern: Int64(Int32(truncatingIfNeeded: number(place, 4))))
  }

  /// The instruction of arm64 at a place.
  fileprivate func word(_ place: Int) -> UInt32 { UInt32(truncatingIfNeeded: number(place, 4)) }
}

extension UInt32 {
  /// Where an instruction of arm64 jumps to without calling; nil: it does not.
  fileprivate func branchTarget(from place: UInt64) -> UInt64? {
    let steps: Int64
    if self & 0xfc00_0000 == 0x1400_0000 {
      steps = Int64(Int32(bitPattern: self << 6) >> 6)
    } else if self & 0xff00_0010 == 0x5400_0000 || self & 0x7e00_0000 == 0x3400_0000 {
      // Under a condition, or if a register is zero or not.
      steps = Int64(Int32(bitPattern: self << 8) >> 13)
    } else {
      return nil
    }
    return place &+ UInt64(bitPattern: steps * 4)
  }

  /// Whether an instruction of arm64 sets the stack pointer to what is computed: from another register, by a register,
  /// or aligned.
  fileprivate var movesStack: Bool {
    // `add` and `sub` of a constant, from another register than the stack pointer itself
    if self & 0xbf80_001f == 0x9100_001f, self >> 5 & 31 != 31 { return true }
    return self & 0xbfe0_001f == 0x8b20_001f || self & 0xff80_001f == 0x9200_001f
  }

  /// Which of the two registers that an instruction of arm64 stores is the return address's; nil: neither.
  fileprivate var placeOfLink: Int? { self & 31 == 30 ? 0 : self >> 10 & 31 == 30 ? 1 : nil }
}

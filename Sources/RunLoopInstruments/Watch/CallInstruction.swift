// SPDX-License-Identifier: Apache-2.0

/// Whether a function jumps to another instead of calling it, as its last deed.
enum TailCall {
  /// Looks through the function's code; most that hand on to another are short.
  static func leads(from function: UInt64, to other: UInt64, in memory: some ReadableMemory) -> Bool {
    let code = memory.bytes(at: function, count: 2048)
    #if arch(x86_64)
      for place in 0..<max(0, code.count - 5) {
        // A jump, or one under a condition, which has a byte before.
        let isJump = code[place] == 0xe9 || (place > 0 && code[place - 1] == 0x0f && code[place] & 0xf0 == 0x80)
        guard isJump else { continue }
        let offset = Int64(Int32(truncatingIfNeeded: code.number(place + 1, 4)))
        if function &+ UInt64(place + 5) &+ UInt64(bitPattern: offset) == other { return true }
      }
    #elseif arch(arm64)
      for place in stride(from: 0, to: code.count - 3, by: 4) {
        let word = UInt32(truncatingIfNeeded: code.number(place, 4))
        guard word & 0xfc00_0000 == 0x1400_0000 else { continue }
        let steps = Int64(Int32(bitPattern: word << 6) >> 6)
        if function &+ UInt64(place) &+ UInt64(bitPattern: steps * 4) == other { return true }
      }
    #endif
    return false
  }
}

/// How a function that keeps a frame pointer lays its frame out.
struct FrameLayout {
  /// How many words stand between the frame pointer and what the function has called.
  let words: Int

  /// Looks at the beginning of a function's code; nil if it keeps no frame pointer, or does not begin with that.
  init?(of function: UInt64, in memory: some ReadableMemory) {
    #if arch(x86_64)
      var code = memory.bytes(at: function, count: 32)[...]
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
      self.words = words
    #else
      return nil
    #endif
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
    #if arch(x86_64)
      if code[3] == 0xe8 {
        target = CallInstruction.entry(address &+ CallInstruction.offset(code, 4), memory)
      } else if code[2] == 0xff, code[3] == 0x15 {
        target = memory.word(at: address &+ CallInstruction.offset(code, 4))
      } else if CallInstruction.isIndirect(code) {
        target = nil
      } else {
        return nil
      }
    #elseif arch(arm64)
      let word = UInt32(truncatingIfNeeded: code.number(4, 4))
      if word & 0xfc00_0000 == 0x9400_0000 {
        let steps = Int64(Int32(bitPattern: word << 6) >> 6)
        target = address &- 4 &+ UInt64(bitPattern: steps * 4)
      } else if word & 0xffff_fc1f == 0xd63f_0000 {
        target = nil
      } else {
        return nil
      }
    #else
      return nil
    #endif
  }

  #if arch(x86_64)
    /// The 32 bits at a place, as what is added to an address.
    private static func offset(_ code: [UInt8], _ place: Int) -> UInt64 {
      UInt64(bitPattern: Int64(Int32(truncatingIfNeeded: code.number(place, 4))))
    }

    /// Where a function begins that may be called through the table of another library's.
    private static func entry(_ address: UInt64, _ memory: some ReadableMemory) -> UInt64 {
      var code = memory.bytes(at: address, count: 16)
      var place = address
      if code.starts(with: [0xf3, 0x0f, 0x1e, 0xfa]) {
        code.removeFirst(4)
        place += 4
      }
      if code.first == 0xf2 {
        code.removeFirst()
        place += 1
      }
      guard code.count >= 6, code[0] == 0xff, code[1] == 0x25 else { return address }
      return memory.word(at: place &+ 6 &+ offset(code, 2)) ?? address
    }

    /// Whether the eight bytes end with a call through a register or through memory.
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
  #endif
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import Testing

#if arch(x86_64)
  /// Code in which each function of 256 bytes calls the next: what is behind the call at its beginning is a return
  /// address.
  private struct Code: ReadableMemory {
    static let base: UInt64 = 0x10000
    /// Functions that are called through a register.
    var indirect: Set<UInt64> = []
    /// Functions that begin with a frame pointer, and keep two registers and a word of their own.
    var framed: Set<UInt64> = []
    private static let beginning: [UInt8] = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x53, 0x48, 0x83, 0xec, 8]

    /// Where function `number` begins.
    static func start(_ number: UInt64) -> UInt64 { base + number * 256 }
    /// Where its call of the next returns to.
    static func site(_ number: UInt64) -> UInt64 { start(number) + 16 }

    func isCode(_ address: UInt64) -> Bool { (Code.base..<(Code.base + 64 * 256)).contains(address) }
    func functionStart(of address: UInt64) -> UInt64? { isCode(address) ? address & ~255 : nil }

    func bytes(at address: UInt64, count: Int) -> [UInt8] { (0..<UInt64(count)).map { byte(address + $0) } }

    private func byte(_ address: UInt64) -> UInt8 {
      guard isCode(address) else { return 0 }
      let number = (address - Code.base) / 256
      switch address & 255 {
      case let place where place < 11 && framed.contains(number): return Code.beginning[Int(place)]
      // A call of the next function, relative to what is behind it.
      case 11 where !indirect.contains(number): return 0xe8
      case 12 where !indirect.contains(number): return 0xf0
      case 14 where indirect.contains(number): return 0xff
      case 15 where indirect.contains(number): return 0xd0
      default: return 0
      }
    }
  }

  @Suite("The scan of a blocked thread's stack", .ownThread) struct StackScanTests {
    private let bottom: UInt64 = 0x7000_0000
    private func place(_ word: Int) -> UInt64 { bottom + UInt64(8 * word) }

    private func scan(_ words: [UInt64], from function: UInt64, limit: Int, _ code: Code = Code()) -> [UInt64] {
      StackScan(
        programCounter: Code.start(function) + 40, stackPointer: bottom, words: words, limit: place(limit), in: code
      ).addresses
    }

    @Test("frame pointers lead from the innermost frame to the run's")
    func chain() {
      // Function 4 is blocked; 3, 2 and 1 have frames.
      let words = [1, 2, place(5), Code.site(3), 0, place(8), Code.site(2), 0, place(12), Code.site(1), 0, 0, 0, 0]
      #expect(
        scan(words, from: 4, limit: 10) == [Code.start(4) + 40, Code.site(3), Code.site(2), Code.site(1)])
    }

    @Test(
      "functions without frame pointers are found by calls that lead further in, and words that lead elsewhere are not")
    func withoutFrames() {
      // 6 was called by 5, and 5 by 4, neither of which keeps a frame; the site of 9 is left from an earlier call.
      let words = [
        Code.site(9), Code.site(5), Code.site(9), Code.site(4), 0, place(8), Code.site(3), 0, place(12), Code.site(2),
        0,
        0, 0, 0,
      ]
      #expect(
        scan(words, from: 6, limit: 10)
          == [Code.start(6) + 40, Code.site(5), Code.site(4), Code.site(3), Code.site(2)])
    }

    @Test("a frame that an earlier call has left further in is passed over")
    func leftFrame() {
      let words = [
        place(5), Code.site(9), 0, Code.site(4), 0, place(8), Code.site(3), 0, place(12), Code.site(2), 0, 0, 0, 0,
      ]
      #expect(
        scan(words, from: 5, limit: 10) == [Code.start(5) + 40, Code.site(4), Code.site(3), Code.site(2)])
    }

    @Test("a call through a register may lead anywhere")
    func indirect() {
      let code = Code(indirect: [3])
      let words = [0, place(3), Code.site(3), place(12), Code.site(2), 0, 0, 0, 0, 0, 0, 0, 0, 0]
      #expect(scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(3), Code.site(2)])
    }

    @Test("a function whose callee has jumped elsewhere has its frame, which says where its return address stands")
    func jumped() {
      // 7 has called something through a register, which has jumped to 9; the site of 3 is left from an earlier call.
      let code = Code(indirect: [1, 7], framed: [7])
      let words = [1, Code.site(3), 0, Code.site(7), 0, 0, 0, place(10), Code.site(1), 0, 0, 0, 0, 0]
      #expect(scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(7), Code.site(1)])
    }

    @Test("a function is found that frame pointers pass over, as it was called by one without")
    func passedOver() {
      // 9 has a frame, 5 has none and was called by 6.
      let code = Code(indirect: [1, 5, 6], framed: [6, 9])
      let words = [1, place(7), Code.site(5), Code.site(6), 0, 0, 0, place(10), Code.site(1), 0, 0, 0, 0, 0]
      #expect(
        scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(5), Code.site(6), Code.site(1)])
    }

    @Test("words that are no stack at all give where the thread stands, and no more")
    func nothing() {
      let words: [UInt64] = [.max, 1, 0, place(1), 7, place(90_000_000), bottom, 5]
      #expect(scan(words, from: 2, limit: 6) == [Code.start(2) + 40])
      #expect(scan([], from: 2, limit: 6) == [Code.start(2) + 40])
    }
  }
#endif

@Suite("Samples of a hang", .ownThread) struct StackSampleTests {
  private func sample(_ addresses: UInt64..., function: UInt64 = 0) -> StackSample {
    StackSample(addresses: addresses, function: function)
  }

  @Test("the stack that was seen most often wins, not the last")
  func mostRepeated() {
    let samples = [sample(1, 10, 20), sample(2, 11, 20), sample(3, 11, 20), sample(4, 11, 20), sample(5, 12, 20)]
    #expect(StackSample.mostRepeated(samples)?.addresses == [2, 11, 20])
    #expect(StackSample.mostRepeated([]) == nil)
  }

  @Test("a thread that runs is mostly at another address of the same function, and of equals the first wins")
  func function() {
    let samples = [sample(1, 10, function: 100), sample(7, 10, function: 7), sample(2, 10, function: 100)]
    #expect(StackSample.mostRepeated(samples)?.addresses == [1, 10])
    #expect(StackSample.mostRepeated([sample(9, 3), sample(8, 4)])?.addresses == [9, 3])
  }
}

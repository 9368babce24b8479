// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import RunLoopInstruments

/// Code in which each function has 256 bytes and calls the next one.
///
/// The return address follows the call at the function's beginning.
private struct Code: ReadableMemory, CustomTestStringConvertible {
  static let base: UInt64 = 0x10000
  let instructions: InstructionSet
  /// The signature in the upper bits of a return address on a stack.
  var signature: UInt64 = 0
  /// Functions that make their call through a register.
  var indirect: Set<UInt64> = []
  /// Functions that begin with a frame pointer, and save some registers and locals.
  var framed: Set<UInt64> = []
  private static let beginning: [UInt8] = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x53, 0x48, 0x83, 0xec, 8]
  private static let words: [UInt32] = [0xa9bf_7bfd, 0x9100_03fd, 0xd100_83ff]
  private static let wordsWithoutFrame: [UInt32] = [0xf81f_0ffe]

  static let x86 = Code(instructions: .x86)
  static let arm64 = Code(instructions: .arm64)
  static let signed = Code(instructions: .arm64, signature: 0x005a_0000_0000_0000)
  static let all = [x86, arm64, signed]

  var testDescription: String { "\(instructions)\(signature == 0 ? "" : ", signed")" }
  var codeAddressMask: UInt64 { signature == 0 ? .max : 0x0000_ffff_ffff_ffff }

  func with(indirect: Set<UInt64>, framed: Set<UInt64> = []) -> Code {
    var copy = self
    copy.indirect = indirect
    copy.framed = framed
    return copy
  }

  static func start(_ number: UInt64) -> UInt64 { base + number * 256 }
  /// The address to which its call of the next function returns.
  static func site(_ number: UInt64) -> UInt64 { start(number) + 16 }
  /// The same address, as stored on a stack.
  func onStack(_ number: UInt64) -> UInt64 { Code.site(number) | signature }

  func isCode(_ address: UInt64) -> Bool { (Code.base..<(Code.base + 64 * 256)).contains(address) }
  func functionStart(of address: UInt64) -> UInt64? { isCode(address) ? address & ~255 : nil }

  func bytes(at address: UInt64, count: Int) -> [UInt8] { (0..<UInt64(count)).map { byte(address + $0) } }

  private func byte(_ address: UInt64) -> UInt8 {
    guard isCode(address) else { return 0 }
    let (number, place) = ((address - Code.base) / 256, Int(address & 255))
    return instructions == .x86 ? byteOfX86(number, place) : byteOfArm(number, place)
  }

  private func byteOfX86(_ number: UInt64, _ place: Int) -> UInt8 {
    switch place {
    case 0..<11 where framed.contains(number): return Code.beginning[place]
    // A relative call of the next function.
    case 11 where !indirect.contains(number): return 0xe8
    case 12 where !indirect.contains(number): return 0xf0
    case 14 where indirect.contains(number): return 0xff
    case 15 where indirect.contains(number): return 0xd0
    default: return 0
    }
  }

  private func byteOfArm(_ number: UInt64, _ place: Int) -> UInt8 {
    let beginning = framed.contains(number) ? Code.words : Code.wordsWithoutFrame
    let word: UInt32
    switch place / 4 {
    case 3: word = indirect.contains(number) ? 0xd63f_0000 : 0x9400_003d
    case let index where index < beginning.count: word = beginning[index]
    default: word = 0
    }
    return UInt8(truncatingIfNeeded: word >> (8 * UInt32(place & 3)))
  }
}

@Suite("The scan of a blocked thread's stack", .ownThread) struct StackScanTests {
  private let bottom: UInt64 = 0x7000_0000
  private func place(_ word: Int) -> UInt64 { bottom + UInt64(8 * word) }

  private func scan(_ words: [UInt64], from function: UInt64, limit: Int, _ code: Code) -> [UInt64] {
    StackScan(
      programCounter: Code.start(function) + 40, stackPointer: bottom, words: words, limit: place(limit), in: code
    ).addresses
  }

  @Test("frame pointers lead from the innermost frame to the run's", arguments: Code.all)
  private func chain(_ code: Code) {
    // Function 4 is blocked, and functions 3, 2 and 1 have frames.
    let words = [
      1, 2, place(5), code.onStack(3), 0, place(8), code.onStack(2), 0, place(12), code.onStack(1), 0, 0, 0, 0,
    ]
    #expect(
      scan(words, from: 4, limit: 10, code) == [Code.start(4) + 40, Code.site(3), Code.site(2), Code.site(1)])
  }

  @Test(
    "calls that lead further in identify functions without frame pointers, and unrelated words do not",
    arguments: Code.all)
  private func withoutFrames(_ code: Code) {
    // 5 called 6 and 4 called 5, both without frames. The address of 9 is left over from an earlier call.
    let words = [
      code.onStack(9), code.onStack(5), code.onStack(9), code.onStack(4), 0, place(8), code.onStack(3), 0, place(12),
      code.onStack(2), 0, 0, 0, 0,
    ]
    #expect(
      scan(words, from: 6, limit: 10, code)
        == [Code.start(6) + 40, Code.site(5), Code.site(4), Code.site(3), Code.site(2)])
  }

  @Test("a stale frame of an earlier call further in is skipped", arguments: Code.all)
  private func leftFrame(_ code: Code) {
    let words = [
      place(5), code.onStack(9), 0, code.onStack(4), 0, place(8), code.onStack(3), 0, place(12), code.onStack(2), 0, 0,
      0, 0,
    ]
    #expect(
      scan(words, from: 5, limit: 10, code) == [Code.start(5) + 40, Code.site(4), Code.site(3), Code.site(2)])
  }

  @Test("a call through a register may lead anywhere", arguments: Code.all)
  private func indirect(_ code: Code) {
    let code = code.with(indirect: [3])
    let words = [0, place(3), code.onStack(3), place(12), code.onStack(2), 0, 0, 0, 0, 0, 0, 0, 0, 0]
    #expect(scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(3), Code.site(2)])
  }

  @Test(
    "a function whose callee jumped elsewhere still has its frame, which locates its return address",
    arguments: Code.all)
  private func jumped(_ code: Code) {
    // 7 called a function through a register, which jumped to 9. The address of 3 is left over from an earlier call.
    let code = code.with(indirect: [1, 7], framed: [7])
    // On x86, 7 has three words, and the call put its address below them. On arm64 it has four, and 9 put the address
    // below them, followed by a word that it does not use.
    let words =
      code.instructions == .x86
      ? [1, code.onStack(3), 0, code.onStack(7), 0, 0, 0, place(10), code.onStack(1), 0, 0, 0, 0, 0]
      : [code.onStack(3), code.onStack(7), 0, 0, 0, 0, 0, place(10), code.onStack(1), 0, 0, 0, 0, 0]
    #expect(scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(7), Code.site(1)])
  }

  @Test("a function that frame pointers skip, because its callee has none, is found", arguments: Code.all)
  private func passedOver(_ code: Code) {
    // 9 has a frame, and 5 has none and was called by 6.
    let code = code.with(indirect: [1, 5, 6], framed: [6, 9])
    let words =
      code.instructions == .x86
      ? [1, place(7), code.onStack(5), code.onStack(6), 0, 0, 0, place(10), code.onStack(1), 0, 0, 0, 0, 0]
      : [1, place(9), code.onStack(5), code.onStack(6), 0, 0, 0, 0, 0, place(11), code.onStack(1), 0, 0, 0, 0]
    #expect(
      scan(words, from: 9, limit: 10, code) == [Code.start(9) + 40, Code.site(5), Code.site(6), Code.site(1)])
  }

  @Test("words that are no stack yield only where the thread stands", arguments: Code.all)
  private func nothing(_ code: Code) {
    let words: [UInt64] = [.max, 1, 0, place(1), 7, place(90_000_000), bottom, 5]
    #expect(scan(words, from: 2, limit: 6, code) == [Code.start(2) + 40])
    #expect(scan([], from: 2, limit: 6, code) == [Code.start(2) + 40])
  }

  @Test("stripping the signature leaves this processor's code addresses unchanged")
  func addresses() {
    let address = UInt64(UInt(bitPattern: dlsym(UnsafeMutableRawPointer(bitPattern: 0), "malloc")))
    #expect(address != 0)
    #expect(address & ProcessMemory(process: getpid()).codeAddressMask == address)
  }
}

private struct Bytes: ReadableMemory {
  let instructions: InstructionSet
  var content: [UInt64: [UInt8]] = [:]

  mutating func put(_ words: [UInt32], at address: UInt64) {
    content[address] = words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  func isCode(_ address: UInt64) -> Bool { true }
  func functionStart(of address: UInt64) -> UInt64? { nil }
  func bytes(at address: UInt64, count: Int) -> [UInt8] {
    for (start, bytes) in content where start <= address && address < start + UInt64(bytes.count) {
      return Array(bytes[Int(address - start)...].prefix(count))
    }
    return []
  }
}

@Suite("The code of arm64", .ownThread) struct ArmCodeTests {
  private let stub: UInt64 = 0x40_0000

  /// The function called through the stub, if a call of the stub leads to one.
  private func target(_ code: [UInt32], table: UInt64 = 0) -> UInt64? {
    var memory = Bytes(instructions: .arm64)
    memory.put(code, at: stub)
    if table != 0 { memory.put([0x1234_5678, 0x0000_ffff], at: table) }
    // A call 4096 bytes before it.
    memory.put([0xd503_201f, 0x9400_0400], at: stub - 4096 - 4)
    return CallInstruction(before: stub - 4096 + 4, in: memory)?.target
  }

  @Test("a call through another library's stub leads to the function in the address table")
  func stubs() {
    // adrp x16, +0x2000; ldr x17, [x16, #0x7f8]; add x16, x16, #0x7f8; br x17
    let stub: [UInt32] = [0xd000_0010, 0xf943_fe11, 0x911f_e210, 0xd61f_0220]
    #expect(target(stub, table: 0x40_27f8) == 0xffff_1234_5678)
    // The same after a landing pad for indirect jumps.
    #expect(target([0xd503_245f] + stub, table: 0x40_27f8) == 0xffff_1234_5678)
    // adrp x16, -0x5000
    #expect(target([0xf0ff_ffd0] + stub.dropFirst(), table: 0x3f_b7f8) == 0xffff_1234_5678)
  }

  @Test("a call of a distant function goes through a stub to it")
  func far() {
    // adrp x16, +0x2000; add x16, x16, #0x7f8; br x16
    #expect(target([0xd000_0010, 0x911f_e210, 0xd61f_0200]) == 0x40_27f8)
  }

  @Test("a call of a function that is no stub leads to it")
  func function() {
    // paciasp; stp x29, x30, [sp, #-16]!
    #expect(target([0xd503_233f, 0xa9bf_7bfd]) == 0x40_0000)
    #expect(target([]) == 0x40_0000)
  }

  @Test(
    "a call through a register is recognised whether or not its address is signed",
    arguments: [
      0xd63f_0000, 0xd63f_03c0, 0xd63f_083f, 0xd73f_0822,
    ])
  func indirect(_ word: UInt32) {
    var memory = Bytes(instructions: .arm64)
    memory.put([0, word], at: 0x1000)
    let call = CallInstruction(before: 0x1008, in: memory)
    #expect(call != nil)
    #expect(call?.target == nil)
  }

  @Test("neither a jump nor a misaligned instruction is a call")
  func noCall() {
    var memory = Bytes(instructions: .arm64)
    memory.put([0x9400_0400, 0x1400_0400, 0xd61f_0200], at: 0x1000)
    #expect(CallInstruction(before: 0x1008, in: memory) == nil)
    #expect(CallInstruction(before: 0x100c, in: memory) == nil)
    #expect(CallInstruction(before: 0x1006, in: memory) == nil)
  }

  /// The words below the frame pointer, and those up to the return address, of a function with this beginning.
  private func layout(_ code: [UInt32]) -> [Int?] {
    var memory = Bytes(instructions: .arm64)
    memory.put(code, at: 0x1000)
    return [
      FrameLayout(of: 0x1000, in: memory)?.words, FrameLayout.wordsToReturnAddress(of: 0x1000, in: memory),
    ]
  }

  @Test("a function's prologue shows how its frame is laid out")
  func frames() {
    // paciasp; stp x29, x30, [sp, #-16]!; mov x29, sp
    #expect(layout([0xd503_233f, 0xa9bf_7bfd, 0x9100_03fd]) == [0, 1])
    // stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, #0x20
    #expect(layout([0xa9bf_7bfd, 0x9100_03fd, 0xd100_83ff]) == [4, 1])
    // sub sp, sp, #0x40; stp x29, x30, [sp, #0x30]; add x29, sp, #0x30
    #expect(layout([0xd101_03ff, 0xa903_7bfd, 0x9100_c3fd]) == [6, 1])
    // sub sp, sp, #1, lsl #12; str x30, [sp, #8]
    #expect(layout([0xd140_07ff, 0xf900_07fe]) == [nil, 511])
    // str x30, [sp, #-16]!
    #expect(layout([0xf81f_0ffe]) == [nil, 2])
    // stp x30, x19, [sp, #-32]!
    #expect(layout([0xa9be_4ffe]) == [nil, 4])
    // sub sp, sp, #0x20; stp x19, x30, [sp, #16]
    #expect(layout([0xd100_83ff, 0xa901_7bf3]) == [nil, 1])
    // ret
    #expect(layout([0xd65f_03c0, 0xf81f_0ffe]) == [nil, nil])
  }

  @Test("a tail jump leads on, even if conditional or through a stub")
  func jumps() {
    var memory = Bytes(instructions: .arm64)
    // b.eq .+4096; cbz x0, .-4096; b .+0x3000
    memory.put([0x5400_8000, 0xb4ff_8000, 0x1400_0c00, 0xd65f_03c0], at: 0x40_0000)
    // At the target of the last one: adrp x16, 0; add x16, x16, #0x7f8; br x16
    memory.put([0x9000_0010, 0x911f_e210, 0xd61f_0200], at: 0x40_3008)
    for target: UInt64 in [0x40_1000, 0x3f_f004, 0x40_3008, 0x40_37f8] {
      #expect(TailCall.leads(from: 0x40_0000, to: target, in: memory))
    }
    #expect(!TailCall.leads(from: 0x40_0000, to: 0x40_2000, in: memory))
  }
}

@Suite("Samples of a hang", .ownThread) struct HeaviestPathTests {
  private func sample(_ addresses: UInt64..., functions: [UInt64]? = nil, proved: Int? = nil) -> StackSample {
    StackSample(addresses: addresses, functions: functions, proved: proved)
  }

  private func path(_ samples: [StackSample]) -> [UInt64]? { HeaviestPath(samples)?.steps.map(\.address) }

  @Test("the path shared by most samples leads from the run to where the thread usually was, with counts")
  func heaviest() throws {
    let samples = [sample(1, 10, 20), sample(2, 11, 20), sample(2, 11, 20), sample(2, 11, 20), sample(5, 12, 20)]
    let path = try #require(HeaviestPath(samples))
    #expect(path.steps.map(\.address) == [2, 11, 20])
    #expect(path.steps.map(\.count) == [3, 3, 5])
    #expect(!path.endsInCall)
    #expect(HeaviestPath([]) == nil)
  }

  @Test("a function whose callees are all rare ends the path")
  func branching() throws {
    let samples = (0..<15).map { sample(100 + UInt64($0), 11, 20) }
    let path = try #require(HeaviestPath(samples))
    #expect(path.steps.map(\.address) == [11, 20])
    #expect(path.endsInCall)
  }

  @Test("samples of a running thread at different addresses of a function count together, and the first wins ties")
  func function() {
    let samples = [
      sample(1, 10, functions: [100, 10]), sample(7, 10, functions: [7, 10]), sample(2, 10, functions: [100, 10]),
    ]
    #expect(path(samples) == [1, 10])
    #expect(path([sample(9, 3), sample(8, 4)]) == [9, 3])
  }

  @Test("a sample that does not lead to the run is left out, unless none does")
  func incomplete() {
    var lost = sample(5)
    lost.isComplete = false
    #expect(path([lost, lost, lost, sample(1, 2)]) == [1, 2])
    #expect(path([lost]) == [5])
  }

  @Test("a function counts as proved if one sample proves it")
  func proved() {
    let samples = [sample(1, 10, 20, proved: 1), sample(1, 10, 20, proved: 2)]
    #expect(HeaviestPath(samples)?.steps.map(\.isProved) == [true, true, false])
  }
}

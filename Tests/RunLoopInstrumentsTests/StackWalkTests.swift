// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import Glibc
import Testing

@testable import RunLoopInstruments

/// A process's memory with functions of 64 bytes, each described as compilers do it.
private struct Described: ReadableMemory {
  static let code: UInt64 = 0x10000
  static let table: UInt64 = 0x80000

  let instructions: InstructionSet
  var content: [UInt64: [UInt8]] = [:]
  private(set) var descriptions: [UInt64] = []
  /// The functions without a description of their own, to which the table assigns that of the function before.
  var bare: Set<Int> = []
  /// Whether the description of the last function applies to the byte before it, too.
  var startsEarly = false
  var codeAddressMask: UInt64 { 0x0000_ffff_ffff_ffff }

  /// - Parameter common: The unwind instructions shared by all functions.
  init(_ instructions: InstructionSet, common: [UInt8]) {
    self.instructions = instructions
    let isX86 = instructions == .x86
    // Version 1, "zR", code and data alignment, the return address column, and pointers encoded as four bytes
    // relative to their own position.
    var bytes: [UInt8] = [0, 0, 0, 0, 1, 0x7a, 0x52, 0, isX86 ? 1 : 4, 0x78, isX86 ? 16 : 30, 1, 0x1b]
    bytes += common
    content[Described.table] = Described.entry(bytes)
  }

  private static func entry(_ bytes: [UInt8]) -> [UInt8] {
    let padded = bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    return words([UInt32(padded.count)]) + padded
  }

  static func words(_ words: [UInt32]) -> [UInt8] {
    words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  static func start(_ number: Int) -> UInt64 { code + UInt64(64 * number) }

  mutating func add(_ code: [UInt8], _ rules: [UInt8]) {
    let number = descriptions.count
    let place = Described.table + UInt64(0x100 * (number + 1))
    let distance = UInt32(place + 4 - Described.table)
    let offset = UInt32(truncatingIfNeeded: Described.start(number) &- (place + 8))
    content[place] = Described.entry(Described.words([distance, offset, 64]) + [0] + rules)
    content[Described.start(number)] = code + [UInt8](repeating: 0, count: 64 - code.count)
    descriptions.append(place)
  }

  func isCode(_ address: UInt64) -> Bool {
    (Described.code..<(Described.code + UInt64(64 * descriptions.count))).contains(address)
  }

  func functionStart(of address: UInt64) -> UInt64? { isCode(address) ? address & ~63 : nil }

  func frameDescription(of address: UInt64) -> UInt64? {
    guard isCode(address) else { return nil }
    var number = Int(address + (isBeforeLast(address) ? 1 : 0) - Described.code) / 64
    while bare.contains(number) { number -= 1 }
    return descriptions[number]
  }

  private func isBeforeLast(_ address: UInt64) -> Bool {
    startsEarly && address == Described.start(descriptions.count - 1) - 1
  }

  func bytes(at address: UInt64, count: Int) -> [UInt8] {
    for (start, bytes) in content where start <= address && address < start + UInt64(bytes.count) {
      return Array(bytes[Int(address - start)...].prefix(count))
    }
    return []
  }
}

private final class Counted: ReadableMemory {
  let memory: Described
  private(set) var reads = 0

  init(_ memory: Described) { self.memory = memory }

  var instructions: InstructionSet { memory.instructions }
  var codeAddressMask: UInt64 { memory.codeAddressMask }
  func isCode(_ address: UInt64) -> Bool { memory.isCode(address) }
  func functionStart(of address: UInt64) -> UInt64? { memory.functionStart(of: address) }
  func frameDescription(of address: UInt64) -> UInt64? { memory.frameDescription(of: address) }

  func bytes(at address: UInt64, count: Int) -> [UInt8] {
    reads += 1
    return memory.bytes(at: address, count: count)
  }
}

private let bottom: UInt64 = 0x7000_0000

private func stack(_ words: [UInt64]) -> StackCopy {
  StackCopy(start: bottom, bytes: words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } })
}

@Suite("The walk of a stack of x86-64", .ownThread) struct StackWalkTests {
  // push rbp; mov rbp, rsp; push rbx; sub rsp, 24; and a call through a register that ends at 16
  private static let framed: [UInt8] =
    [0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 24] + [UInt8](repeating: 0x90, count: 5) + [0xff, 0xd0]
  private static let framedRules: [UInt8] = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x45, 0x83, 3]
  // sub rsp, 8, and the same call
  private static let frameless: [UInt8] =
    [0x48, 0x83, 0xec, 8] + [UInt8](repeating: 0x90, count: 10) + [0xff, 0xd0]
  private static let framelessRules: [UInt8] = [0x44, 0x0e, 16]

  /// Functions 0 to 3: one waiting in the kernel, one without and one with a frame pointer, and the thread's first
  /// one.
  private static func memory(framed: [UInt8] = StackWalkTests.framed) -> Described {
    var memory = Described(.x86, common: [0x0c, 7, 8, 0x90, 1])
    memory.add([0x0f, 0x05], [])
    memory.add(frameless, framelessRules)
    memory.add(framed, framedRules)
    memory.add(Self.framed, framedRules + [0x07, 16])
    return memory
  }

  private func site(_ number: Int) -> UInt64 { Described.start(number) + 16 }
  private var blocked: MachineState { MachineState(programCounter: Described.start(0) + 2, stackPointer: bottom) }

  /// The stack of the four functions, starting with the innermost return address.
  private var words: [UInt64] {
    // A word and the return address of 1; three words, rbx, frame pointer and return address of 2; then those of 3.
    [site(1), 7, site(2), 1, 2, 3, 4, bottom + 80, site(3), 0, 0, 0, 0, 0, 0, 0, 0]
  }

  @Test("functions with and without frame pointers are unwound by their tables, and all is proved")
  func chain() {
    let walk = StackWalk(from: blocked, stack: stack(words), limit: 0, in: StackWalkTests.memory())
    #expect(walk.addresses == [Described.start(0) + 2, site(1), site(2), site(3)])
    #expect(walk.proved == 4)
    #expect(walk.isComplete)
  }

  @Test("the stack walk ends at the frame of the run")
  func limit() {
    let walk = StackWalk(from: blocked, stack: stack(words), limit: bottom + 32, in: StackWalkTests.memory())
    #expect(walk.addresses == [Described.start(0) + 2, site(1), site(2), site(3)])
    let near = StackWalk(from: blocked, stack: stack(words), limit: bottom + 8, in: StackWalkTests.memory())
    #expect(near.addresses == [Described.start(0) + 2, site(1)])
    #expect(near.isComplete)
  }

  @Test("behind a function with a dynamic stack frame, it and all its callers are guesses")
  func moving() {
    // After the beginning: sub rsp, rax
    var code = StackWalkTests.framed
    code.replaceSubrange(9..<12, with: [0x48, 0x29, 0xc4])
    var words = words
    words.insert(contentsOf: [8, 9, 10, 11], at: 3)
    words[11] = bottom + 112
    let walk = StackWalk(from: blocked, stack: stack(words), limit: 0, in: StackWalkTests.memory(framed: code))
    #expect(walk.addresses == [Described.start(0) + 2, site(1), site(2), site(3)])
    #expect(walk.proved == 3)
  }

  @Test("a known frame pointer is used wherever the frame is")
  func known() {
    var words = words
    words.insert(contentsOf: [8, 9, 10, 11], at: 3)
    words[11] = bottom + 112
    var state = blocked
    state.others[6] = bottom + 88
    let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: StackWalkTests.memory())
    #expect(walk.addresses == [Described.start(0) + 2, site(1), site(2), site(3)])
    #expect(walk.proved == 4)
  }

  @Test("nothing from a damaged unwind table counts as proved")
  func damaged() {
    var memory = StackWalkTests.memory()
    // The second return address points to no code.
    var words = words
    words[2] = 0x1234
    let walk = StackWalk(from: blocked, stack: stack(words), limit: 0, in: memory)
    #expect(walk.proved == 2)
    // Its description claims to belong to no table.
    memory.content[memory.descriptions[1]] = [12, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0]
    #expect(StackWalk(from: blocked, stack: stack(self.words), limit: 0, in: memory).proved == 2)
  }

  @Test("the walk of a cyclic stack ends")
  func circle() {
    var words = words
    words[7] = bottom + 56
    let walk = StackWalk(from: blocked, stack: stack(words), limit: 0, in: StackWalkTests.memory())
    #expect(walk.addresses.count < 10)
  }

  @Test("a linker's stub is unwound by a formula")
  func stub() {
    // rsp + 8 + (rip & 15 >= 11) * 8, as a linker writes it
    let formula: [UInt8] = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22]
    var memory = Described(.x86, common: [0x0c, 7, 8, 0x90, 1])
    memory.add([0xff, 0x25], [0x0f, UInt8(formula.count)] + formula)
    memory.add(Self.framed, Self.framedRules + [0x07, 16])
    for (place, words) in [(UInt64(2), [site(1), 0]), (12, [5, site(1), 0])] {
      let state = MachineState(programCounter: Described.start(0) + place, stackPointer: bottom)
      let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: memory)
      #expect(walk.addresses == [state.programCounter, site(1)])
    }
  }

  @Test("a function whose length exceeds Int is ignored")
  func absurdLength() {
    var memory = StackWalkTests.memory()
    #expect(!FrameLayout.isFixed(0..<UInt64.max, in: memory))
    func bytes(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    // Pointers have eight bytes each.
    memory.content[Described.table]?[16] = 0
    let place = memory.descriptions[1]
    let distance = UInt32(place + 4 - Described.table)
    let lengths: [(UInt64, Bool)] = [(64, true), (1 << 63, false)]
    for (length, isKnown) in lengths {
      var description = Described.words([24, distance])
      description += bytes(Described.start(1))
      description += bytes(length)
      memory.content[place] = description + [0, 0, 0, 0]
      #expect((FrameRules(at: Described.start(1) + 16, in: memory) != nil) == isKnown)
    }
  }

  @Test("the frame of a signal handler is crossed to the interrupted function", arguments: [0, 1] as [UInt64])
  func signal(_ early: UInt64) {
    var memory = StackWalkTests.memory()
    // The function that a handler returns to: mov rax, 15; syscall. The interrupted stack pointer is saved at 24, its
    // program counter at 16, and its frame pointer at 8. The table entry may begin one byte before the function.
    let number = memory.descriptions.count
    memory.add([0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05], [])
    let common = Described.table - 0x4000
    let head: [UInt8] = [0, 0, 0, 0, 1, 0x7a, 0x52, 0x53, 0, 1, 0x78, 16, 1, 0x1b, 0, 0]
    memory.content[common] = Described.words([UInt32(head.count)]) + head
    let place = memory.descriptions[number]
    let rules: [UInt8] = [0x0f, 3, 0x77, 24, 0x06, 0x10, 16, 2, 0x77, 16, 0x10, 6, 2, 0x77, 8]
    let start = Described.start(number) - early
    let entry = Described.words([
      UInt32(truncatingIfNeeded: place + 4 &- common), UInt32(truncatingIfNeeded: start &- (place + 8)), 65,
    ])
    memory.content[place] = Described.words([UInt32(entry.count + 16)]) + entry + [0] + rules
    memory.startsEarly = early == 1
    // The handler waits in the kernel. It interrupted the function 2 in the middle, without a call.
    let interrupted = Described.start(2) + 11
    let words: [UInt64] = [
      Described.start(number), 0, bottom + 80, interrupted, bottom + 48, 0, 1, 2, 3, 4, bottom + 120, site(3), 0, 0, 0,
      0, 0, 0, 0,
    ]
    let walk = StackWalk(from: blocked, stack: stack(words), limit: 0, in: memory)
    #expect(walk.addresses == [Described.start(0) + 2, Described.start(number), interrupted, site(3)])
    #expect(walk.proved == 4)
    #expect(walk.isComplete)
  }

  /// The first instructions of a function, and the number of words that they put on the stack.
  private static let beginnings: [([UInt8], Int)] = [
    ([], 0), ([0x50], 1), ([0xf3, 0x0f, 0x1e, 0xfa, 0x50], 1), ([0x48, 0x83, 0xec, 24], 3),
    ([0x41, 0x56, 0x53, 0x48, 0x81, 0xec, 40, 0, 0, 0], 7), ([0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 16], 4),
  ]

  @Test("the frame of a function without rules follows from its first instructions, and its callers are guesses")
  func bare() {
    for (beginning, count) in Self.beginnings {
      var memory = Described(.x86, common: [0x0c, 7, 8, 0x90, 1])
      memory.add([0x0f, 0x05], [])
      memory.add(beginning + [UInt8](repeating: 0x90, count: 14 - beginning.count) + [0xff, 0xd0], [])
      memory.add(Self.framed, Self.framedRules + [0x07, 16])
      memory.bare = [1]
      // Remains of earlier calls are in the frame, except in its first words.
      let frame = (0..<count).map { $0 < 2 ? UInt64($0) : site(1) }
      let walk = StackWalk(from: blocked, stack: stack([site(1)] + frame + [site(2), 0, 0, 0]), limit: 0, in: memory)
      #expect(walk.addresses == [Described.start(0) + 2, site(1), site(2)], "\(beginning)")
      #expect(walk.proved == 2, "\(beginning)")
      #expect(walk.isComplete && walk.reachesEnd, "\(beginning)")
    }
  }

  @Test("of several functions without rules, the one that a call leads to is left, with its saved registers")
  func bareCalls() {
    var memory = Described(.x86, common: [0x0c, 7, 8, 0x90, 1])
    memory.add([0x0f, 0x05], [])
    memory.add(Self.framed, [])
    // Interrupted in the middle: push rbp; push rbx
    memory.add([0x55, 0x53] + [UInt8](repeating: 0x90, count: 14), [])
    // sub rsp, 8; call 2, ending at 16
    let distance = Int32(Int(Described.start(2)) - Int(Described.start(3)) - 16)
    memory.add(
      [0x48, 0x83, 0xec, 8] + [UInt8](repeating: 0x90, count: 7) + [0xe8]
        + (0..<4).map { UInt8(truncatingIfNeeded: distance >> (8 * $0)) }, Self.framelessRules)
    memory.add(Self.framed, Self.framedRules + [0x07, 16])
    memory.bare = [1, 2]
    let state = MachineState(programCounter: Described.start(2) + 10, stackPointer: bottom, others: [6: 1, 3: 2])
    let words = [5, bottom + 64, site(3), 7, site(4), 0, 0, 0, 0, 0, 0]
    let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: memory)
    #expect(walk.addresses == [state.programCounter, site(3), site(4)])
    #expect(walk.proved == 1 && walk.isComplete)
  }

  @Test("a walk that finds no caller does not reach the end")
  func gap() {
    var memory = StackWalkTests.memory()
    memory.bare = [2]
    let walk = StackWalk(from: blocked, stack: stack([site(1), 7, site(2), 1, 2]), limit: bottom + 400, in: memory)
    #expect(!walk.isComplete && !walk.reachesEnd)
    let sample = StackSample(addresses: walk.addresses, isComplete: walk.isComplete, reachesEnd: walk.reachesEnd)
    #expect(sample.gap == "the caller of its outermost function was not found")
    #expect(StackSample(addresses: walk.addresses).gap == nil)
  }

  @Test("no frame is searched outside the copied stack")
  func outside() {
    // As in a handler with its own stack: the interrupted function's frame is elsewhere.
    let state = MachineState(programCounter: site(2), stackPointer: bottom - 1 << 24)
    let memory = Counted(StackWalkTests.memory())
    let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: memory)
    #expect(walk.addresses == [state.programCounter])
    #expect(memory.reads < 1000)
  }

  @Test("a rule that moves the stack pointer inwards ends the proved part")
  func back() {
    var memory = Described(.x86, common: [0x0c, 7, 8, 0x90, 1])
    memory.add([0x0f, 0x05], [])
    // The caller's stack pointer allegedly lies half a mebibyte below the base.
    memory.add(Self.frameless, Self.framelessRules + [0x14, 7, 0x80, 0x80, 4])
    memory.add(Self.framed, Self.framedRules + [0x07, 16])
    #expect(StackWalk(from: blocked, stack: stack(words), limit: 0, in: memory).proved == 2)
  }

  @Test("a stack walk ends with any bytes as table, formula or stack")
  func anything() {
    var random: UInt64 = 0x9e37_79b9_7f4a_7c15
    func next() -> UInt64 {
      random ^= random << 13
      random ^= random >> 7
      random ^= random << 17
      return random
    }
    for round in 0..<1000 {
      var memory = StackWalkTests.memory()
      var words = words
      // Some bytes of the descriptions, the code and the stack are changed.
      for (place, bytes) in memory.content where round % 3 == 0 || place >= Described.table {
        var bytes = bytes
        for _ in 0..<(next() % 6) { bytes[Int(next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: next()) }
        memory.content[place] = bytes
      }
      if round % 2 == 0 { words[Int(next() % UInt64(words.count))] = next() }
      let walk = StackWalk(from: blocked, stack: stack(words), limit: round % 5 == 0 ? bottom + 64 : 0, in: memory)
      #expect(walk.proved <= walk.addresses.count && walk.addresses.count <= 128)
      let bytes = (0..<24).map { _ in UInt8(truncatingIfNeeded: next()) }
      _ = FrameExpression.value(bytes, startingWith: 1, .init(register: { UInt64($0) }, word: { $0 &+ UInt64($1) }))
    }
  }
}

@Suite("The walk of a stack of arm64", .ownThread) struct ArmStackWalkTests {
  /// Function 0 waits in the kernel with its return address in the register; 1 has a frame pointer, and 2 is the
  /// first.
  private var memory: Described {
    var memory = Described(.arm64, common: [0x0c, 31, 0])
    memory.add(Described.words([0xd400_0001]), [])
    // stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]; blr x8
    let code = Described.words([0xa9be_7bfd, 0x9100_03fd, 0xf900_0bf3, 0xd63f_0100])
    // After one instruction the base is 32 bytes up, with x29 and x30 saved. After the next it is relative to x29.
    let rules: [UInt8] = [0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x41, 0x93, 2]
    memory.add(code, rules)
    memory.add(code, rules + [0x07, 30])
    return memory
  }

  private func site(_ number: Int) -> UInt64 { Described.start(number) + 16 }

  /// The signature in the upper bits of an address in a register.
  private let signature: UInt64 = 0x005a_0000_0000_0000

  @Test("a return address is found in its register or on the stack, signed or not")
  func chain() {
    let words = [bottom + 32, site(2) | signature, 0, 0, 0, 0, 0, 0]
    var state = MachineState(programCounter: Described.start(0) + 4, stackPointer: bottom)
    state.others[30] = site(1) | signature
    let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: memory)
    #expect(walk.addresses == [state.programCounter, site(1), site(2)])
    #expect(walk.proved == 3)
    #expect(walk.isComplete)
  }

  @Test("without the return address register only the thread's own position is proved")
  func withoutLink() {
    let state = MachineState(programCounter: Described.start(0) + 4, stackPointer: bottom)
    let walk = StackWalk(from: state, stack: stack([0, 0, 0, 0]), limit: 0, in: memory)
    #expect(walk.addresses == [state.programCounter])
  }

  @Test("inside a function's prologue the frame is unwound as far as it is set up", arguments: [0, 1, 2, 3])
  func beginning(_ instructions: Int) {
    let words = [bottom + 32, site(2), 0, 0, 0, 0, 0, 0]
    var state = MachineState(programCounter: Described.start(1) + UInt64(4 * instructions), stackPointer: bottom)
    state.others = [30: site(2), 29: instructions < 2 ? bottom + 32 : bottom]
    if instructions == 0 { state.stackPointer = bottom + 32 }
    let walk = StackWalk(from: state, stack: stack(words), limit: 0, in: memory)
    #expect(walk.addresses == [state.programCounter, site(2)])
  }
}

@Suite("The walk of this thread's own stack", .ownThread) struct OwnStackWalkTests {
  @Test("the walk of this thread's stack agrees with the C library's unwinder")
  func own() throws {
    let memory = ProcessMemory(process: getpid())
    let thread = try BlockedThread()
    defer { thread.end() }
    let registers = thread.registers
    let bytes = memory.bytes(at: registers.stackPointer, count: 1 << 14)
    let state = MachineState(programCounter: registers.programCounter, stackPointer: registers.stackPointer)
    let walk = StackWalk(
      from: state, stack: StackCopy(start: registers.stackPointer, bytes: bytes), limit: 0, in: memory)
    #expect(walk.proved >= thread.addresses.count)
    #expect(walk.isComplete)
    // Beyond the blocking function, both have the same return addresses.
    let common = thread.addresses.suffix(2)
    #expect(Array(walk.addresses.suffix(2)) == Array(common))
  }
}

/// A thread that waits for a pipe, with the addresses that the C library's unwinder finds on its stack.
private final class BlockedThread {
  private let context: Context
  private let thread: pthread_t
  private let number: Int32
  let addresses: [UInt64]

  init() throws {
    let context = try Context()
    var thread = pthread_t()
    let answer = pthread_create(
      &thread, nil,
      { raw in
        if let raw { Unmanaged<Context>.fromOpaque(raw).takeUnretainedValue().wait() }
        return nil
      }, Unmanaged.passUnretained(context).toOpaque())
    try #require(answer == 0, "\(String(cString: strerror(answer)))")
    // Signalled when the thread has written the values read here.
    context.isReady.wait()
    (self.context, self.thread) = (context, thread)
    (number, addresses) = (context.number, context.addresses)
  }

  /// The registers in the system call in which the thread waits.
  var registers: ThreadRegisters {
    while true {
      if let found = ThreadRegisters(thread: number, of: getpid()), found.call == 0 { return found }
      sched_yield()
    }
  }

  /// Closes the pipe's write end, and waits for the thread.
  func end() {
    close(context.ends[1])
    pthread_join(thread, nil)
    close(context.ends[0])
  }

  private final class Context {
    private(set) var ends: [Int32] = [-1, -1]
    let isReady = DispatchSemaphore(value: 0)
    private(set) var number: Int32 = 0
    private(set) var addresses: [UInt64] = []

    init() throws {
      // Closed on exec, so that programs started meanwhile do not keep the thread waiting.
      let answer = crl_pipe(&ends)
      try #require(answer == 0, "\(String(cString: strerror(-answer)))")
    }

    func wait() {
      typealias Backtrace = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32
      number = crl_thread_id()
      if let symbol = dlsym(nil, "backtrace") {
        var found = [UnsafeMutableRawPointer?](repeating: nil, count: 64)
        let count = unsafeBitCast(symbol, to: Backtrace.self)(&found, 64)
        addresses = found[..<Int(count)].map { UInt64(UInt(bitPattern: $0)) }
      }
      isReady.signal()
      var byte: UInt8 = 0
      while read(ends[0], &byte, 1) < 0, errno == EINTR {}
    }
  }
}

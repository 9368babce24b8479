// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore

/// A sample of a hanging thread.
package struct StackSample: Sendable, Hashable {
  /// The return addresses, innermost first.
  ///
  /// The first one is the current instruction.
  package var addresses: [UInt64]
  /// The start of each address's function, or the address itself if the function is unknown.
  package var functions: [UInt64]
  /// The number of innermost addresses that are proved.
  package var proved: Int
  /// Whether the addresses reach the run that made the call-out.
  package var isComplete: Bool
  /// Whether the addresses reach the run, or the first function of the thread, at least by guesses.
  package var reachesEnd: Bool
  package var blockedIn: BlockedCall?
  package var waitsFor: Int32?

  /// Why the stack is incomplete, or nil if it reaches its end.
  var gap: String? {
    guard !reachesEnd else { return nil }
    return addresses.count < StackScan.most
      ? "the caller of its outermost function was not found" : "it has more than \(StackScan.most) functions"
  }

  package init(
    addresses: [UInt64], functions: [UInt64]? = nil, proved: Int? = nil, isComplete: Bool = true,
    reachesEnd: Bool? = nil, blockedIn: BlockedCall? = nil, waitsFor: Int32? = nil
  ) {
    self.addresses = addresses
    self.functions = functions ?? addresses
    self.proved = proved ?? addresses.count
    self.isComplete = isComplete
    self.reachesEnd = reachesEnd ?? isComplete
    self.blockedIn = blockedIn
    self.waitsFor = waitsFor
  }
}

/// Samples the stack of a thread without affecting the thread.
///
/// The stack of a blocked thread is read from its memory; for a running thread, the kernel's own samples are used. The
/// thread gets no signals, and its system calls are not interrupted. Must be used on a single thread.
package final class StackSampler {
  private let thread: Int32
  private let memory: ProcessMemory
  private var sampler = crl_sampler()
  private var isOpen = false
  /// The error of sampling with the kernel.
  private var refusal: SystemError?
  /// The error of reading the thread's registers.
  private var blindness: SystemError?
  /// The kernel's samples since the last request.
  private var pending: [Pending] = []
  private static let mostPending = 32
  private var buffer = crl_sample()

  /// A sample that has not been unwound.
  private struct Pending {
    let state: MachineState
    let stack: StackCopy
    /// The addresses found with frame pointers.
    let addresses: [UInt64]
  }

  package init(thread: Int32, in memory: ProcessMemory) {
    self.thread = thread
    self.memory = memory
  }

  deinit { if isOpen { crl_sampler_close(&sampler) } }

  /// Samples the stack.
  ///
  /// Returns an empty array if no sample is available.
  ///
  /// - Parameters:
  ///   - limit: An address in the frame of the loop's run, or zero if it is unknown.
  ///   - awaited: The thread whose work the thread waits for, or zero if it is unknown.
  package func sample(limit: UInt64, awaited: Int32) -> [StackSample] {
    if let registers = ThreadRegisters(thread: thread, of: memory.process) {
      // Samples taken while it was running are out of date.
      drain()
      pending.removeAll(keepingCapacity: true)
      var sample = unwind(registers, limit)
      // If the thread has continued meanwhile, the copy of its stack is inconsistent.
      guard ThreadRegisters(thread: thread, of: memory.process) == registers else { return [] }
      let wait = ThreadWait(of: thread, registers, awaited: awaited, in: memory)
      (sample.blockedIn, sample.waitsFor) = (wait.blockedIn, wait.thread)
      return [sample]
    }
    blindness = ProcFile.failure("/proc/\(memory.process)/task/\(thread)/syscall")
    guard ThreadState(thread: thread, of: memory.process) == .runs else { return [] }
    open()
    drain()
    defer { pending.removeAll(keepingCapacity: true) }
    return pending.map { unwind($0, limit) }
  }

  private func open() {
    guard !isOpen, refusal == nil else { return }
    // One sample per two milliseconds of processor time.
    let answer = crl_sampler_open(&sampler, thread, 2_000_000)
    isOpen = answer == 0
    if answer < 0 { refusal = SystemError(call: "perf_event_open", number: -answer) }
  }

  /// The reason why the stack is missing or incomplete, or nil if no access was denied.
  func problem(hasSamples: Bool) -> String? {
    if hasSamples { return memory.problem }
    let refusals = [blindness, refusal].compactMap { $0.map { "\($0)" } }
    return refusals.isEmpty ? memory.problem : refusals.joined(separator: "; ")
  }

  /// Reads the kernel's samples, to make room for more.
  package func drain() {
    guard isOpen else { return }
    while let next = next() {
      pending.append(next)
      // Thinned out evenly over time.
      if pending.count == Self.mostPending { pending = pending.indices.filter { $0 % 2 == 1 }.map { pending[$0] } }
    }
  }

  private func next() -> Pending? {
    let size = Int(CRL_SAMPLE_STACK)
    let bytes = [UInt8](
      unsafeUninitializedCapacity: size,
      initializingWith: { memory, count in
        buffer.frames = 0
        count = crl_sampler_next(&sampler, &buffer, memory.baseAddress) != 0 ? Int(buffer.stack) : 0
      })
    guard buffer.frames > 0 else { return nil }
    let addresses = withUnsafeBytes(of: buffer.addresses) {
      $0.bindMemory(to: UInt64.self).prefix(Int(buffer.frames)).map { $0 & memory.codeAddressMask }
    }
    let registers = withUnsafeBytes(of: buffer.registers) { Array($0.bindMemory(to: UInt64.self)) }
    guard buffer.has_registers != 0, let numbers = RegisterNumbers(memory.instructions) else {
      let state = MachineState(programCounter: addresses[0], stackPointer: 0)
      return Pending(state: state, stack: StackCopy(start: 0, bytes: [], isPast: true), addresses: addresses)
    }
    var others: [Int: UInt64] = [:]
    let known = memory.instructions == .x86 ? 0...15 : 0...30
    for number in known where number != numbers.stackPointer { others[number] = registers[number] }
    let state = MachineState(
      programCounter: registers[Int(CRL_SAMPLE_COUNTER)], stackPointer: registers[numbers.stackPointer], others: others)
    let stack = StackCopy(start: state.stackPointer, bytes: bytes, isPast: true)
    return Pending(state: state, stack: stack, addresses: addresses)
  }

  private func unwind(_ pending: Pending, _ limit: UInt64) -> StackSample {
    if !memory.isCode(pending.state.programCounter) { memory.readMap() }
    let walk = StackWalk(from: pending.state, stack: pending.stack, limit: limit, mayGuess: false, in: memory)
    // Without a table, uses the kernel's frame pointer walk, which skips functions without frame pointers.
    guard walk.isComplete || walk.addresses.count >= pending.addresses.count else {
      return sample(pending.addresses, proved: 1, isComplete: false)
    }
    return sample(walk.addresses, proved: walk.proved, isComplete: walk.isComplete, reachesEnd: walk.reachesEnd)
  }

  private func sample(
    _ addresses: [UInt64], proved: Int, isComplete: Bool, reachesEnd: Bool = false
  ) -> StackSample {
    let functions = addresses.enumerated().map { index, address in
      memory.functionStart(of: index == 0 ? address : address &- 1) ?? address
    }
    return StackSample(
      addresses: addresses, functions: functions, proved: proved, isComplete: isComplete, reachesEnd: reachesEnd)
  }

  private func unwind(_ registers: ThreadRegisters, _ limit: UInt64) -> StackSample {
    if !memory.isCode(registers.programCounter) { memory.readMap() }
    let pointer = registers.stackPointer & ~7
    // Reads up to the run's frame if its address is known, or else the typical size of a stack.
    let isKnown = limit > pointer && limit - pointer < 8 << 20
    let size = isKnown ? Int(min(limit - pointer + 256, 1 << 20)) : 1 << 16
    let stack = StackCopy(start: pointer, bytes: memory.bytes(at: pointer, count: size))
    let state = MachineState(programCounter: registers.programCounter, stackPointer: registers.stackPointer)
    let walk = StackWalk(from: state, stack: stack, limit: isKnown ? limit : 0, in: memory)
    return sample(walk.addresses, proved: walk.proved, isComplete: walk.isComplete, reachesEnd: walk.reachesEnd)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import RunLoopCore

/// What was seen of a thread at a moment of a hang.
package struct StackSample: Sendable, Hashable {
  package var addresses: [UInt64]
  package var blockedIn: BlockedCall?
  package var waitsFor: Int32?
  /// Where the innermost function begins, if that is known.
  package var function: UInt64 = 0

  package init(addresses: [UInt64], function: UInt64 = 0, blockedIn: BlockedCall? = nil, waitsFor: Int32? = nil) {
    self.addresses = addresses
    self.function = function
    self.blockedIn = blockedIn
    self.waitsFor = waitsFor
  }

  /// What is the same in two samples of a thread that runs: the innermost address is mostly another.
  private struct Place: Hashable {
    let function: UInt64
    let callers: ArraySlice<UInt64>
  }

  /// The one of several that is repeated most, the first of equals.
  package static func mostRepeated(_ samples: [StackSample]) -> StackSample? {
    var counts: [Place: (count: Int, first: Int)] = [:]
    for (index, sample) in samples.enumerated() {
      let place = Place(function: sample.function, callers: sample.addresses.dropFirst())
      counts[place, default: (0, index)].count += 1
    }
    let best = counts.values.max { ($0.count, -$0.first) < ($1.count, -$1.first) }
    return best.map { samples[$0.first] }
  }
}

/// Samples the stack of one thread without touching it.
///
/// The stack of a blocked thread is read from its memory; what a thread on a processor executes is asked of the
/// kernel's own samples. A thread never gets a signal, and no system call of its is interrupted. One thread.
package final class StackSampler {
  private let thread: Int32
  private let memory: ProcessMemory
  private var sampler = crl_sampler()
  private var isOpen = false
  /// Why the kernel does not sample the thread.
  private var refusal: SystemError?
  /// Why it cannot be read where the thread is blocked.
  private var blindness: SystemError?
  /// What the kernel has sampled since somebody asked.
  private var pending: [StackSample] = []
  private var buffer = crl_sample()

  package init(thread: Int32, in memory: ProcessMemory) {
    self.thread = thread
    self.memory = memory
  }

  deinit { if isOpen { crl_sampler_close(&sampler) } }

  /// Samples the stack; nil if there is nothing to be seen now.
  ///
  /// - Parameters:
  ///   - limit: An address in the frame of the loop's run; zero: it is not known.
  ///   - awaited: The thread whose work the thread waits for; zero: it is not known.
  package func sample(limit: UInt64, awaited: Int32) -> StackSample? {
    if let registers = ThreadRegisters(thread: thread, of: memory.process) {
      // What was sampled while it ran is of another moment.
      drain()
      pending.removeAll(keepingCapacity: true)
      let addresses = scan(registers, limit)
      // It may have gone on meanwhile: then the stack is no one's.
      guard ThreadRegisters(thread: thread, of: memory.process) == registers else { return nil }
      let wait = ThreadWait(of: thread, registers, awaited: awaited, in: memory)
      return StackSample(addresses: addresses, blockedIn: wait.blockedIn, waitsFor: wait.thread)
    }
    blindness = ProcFile.failure("/proc/\(memory.process)/task/\(thread)/syscall")
    guard ThreadState(thread: thread, of: memory.process) == .runs else { return nil }
    open()
    drain()
    defer { pending.removeAll(keepingCapacity: true) }
    return StackSample.mostRepeated(pending)
  }

  private func open() {
    guard !isOpen, refusal == nil else { return }
    // A millisecond of its time each.
    let answer = crl_sampler_open(&sampler, thread, 1_000_000)
    isOpen = answer == 0
    if answer < 0 { refusal = SystemError(call: "perf_event_open", number: -answer) }
  }

  /// Why nothing, or not the whole stack, could be sampled; nil if nothing was refused.
  func problem(hasSamples: Bool) -> String? {
    if hasSamples { return memory.problem }
    let refusals = [blindness, refusal].compactMap { $0.map { "\($0)" } }
    return refusals.isEmpty ? memory.problem : refusals.joined(separator: "; ")
  }

  /// Takes what the kernel has sampled, so that it has room for what follows.
  package func drain() {
    guard isOpen else { return }
    while crl_sampler_next(&sampler, &buffer) != 0 {
      guard pending.count < 1000 else { continue }
      var addresses = withUnsafeBytes(of: buffer.addresses) {
        $0.bindMemory(to: UInt64.self).prefix(Int(buffer.frames)).map { $0 & memory.codeAddressMask }
      }
      let words = withUnsafeBytes(of: buffer.stack) {
        Array($0.bindMemory(to: UInt64.self).prefix(Int(buffer.words)))
      }
      let function = memory.functionStart(of: addresses[0]) ?? 0
      if let caller = StackScan.caller(of: addresses, words, in: memory) { addresses.insert(caller, at: 1) }
      pending.append(StackSample(addresses: addresses, function: function))
    }
  }

  private func scan(_ registers: ThreadRegisters, _ limit: UInt64) -> [UInt64] {
    if !memory.isCode(registers.programCounter) { memory.readMap() }
    let pointer = registers.stackPointer & ~7
    // The frame of the run is near its limit; without one, as much as most stacks have.
    let isKnown = limit > pointer && limit - pointer < 8 << 20
    let size = isKnown ? Int(min(limit - pointer + 256, 1 << 20)) : 1 << 16
    let bytes = memory.bytes(at: pointer, count: size)
    let words = bytes.withUnsafeBytes { raw in
      (0..<raw.count / 8).map { raw.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) }
    }
    let scan = StackScan(
      programCounter: registers.programCounter, stackPointer: pointer, words: words, limit: isKnown ? limit : 0,
      in: memory)
    return scan.addresses
  }
}

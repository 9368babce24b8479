// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// What a thread has done with its time, as the kernel counts it, without the thread's noticing.
package struct ThreadClock: Sendable {
  /// Nanoseconds on a processor.
  package var running: Int64
  /// Nanoseconds in which it could have run and had no processor.
  package var runnable: Int64
  /// When that was read.
  package var time: Int64

  /// Reads the clock; nil if the thread is gone.
  package init?(thread: Int32, of process: Int32, at time: Int64) {
    guard let text = ProcFile.read("/proc/\(process)/task/\(thread)/schedstat") else { return nil }
    let fields = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { Int64($0) }
    guard fields.count >= 2 else { return nil }
    (running, runnable, self.time) = (fields[0], fields[1], time)
  }

  package init(running: Int64, runnable: Int64, time: Int64) {
    (self.running, self.runnable, self.time) = (running, runnable, time)
  }

  /// How much of the time since another reading the thread could have run and had no processor, at the most.
  ///
  /// - Parameter isRunnable: Whether it can run now: the kernel counts a wait for a processor when it is over.
  package func starvation(since other: ThreadClock, isRunnable: Bool) -> Int64 {
    let without = max(0, time - other.time - (running - other.running))
    return isRunnable ? without : min(without, max(0, runnable - other.runnable))
  }
}

/// How a thread spent some time.
public struct ProcessorShares: Sendable, Codable, Hashable {
  /// The part of the time on a processor, from 0 to 1.
  public let onCPU: Double
  /// The part in which it could have run and had no processor.
  public let runnable: Double
  /// The part in which it was blocked.
  public let blocked: Double

  /// What the thread did between two readings of its clock.
  init(from first: ThreadClock, to last: ThreadClock) {
    let span = Double(max(1, last.time - first.time))
    onCPU = min(1, max(0, Double(last.running - first.running) / span))
    runnable = min(1 - onCPU, max(0, Double(last.runnable - first.runnable) / span))
    blocked = 1 - onCPU - runnable
  }
}

/// What a thread does at a moment, as the kernel has it.
package enum ThreadState: Sendable, Hashable {
  /// It has a processor, or waits for one.
  case runs
  case blocked
  /// By a signal, or by a debugger.
  case stopped
  case ended

  package init(thread: Int32, of process: Int32) {
    guard let text = ProcFile.read("/proc/\(process)/task/\(thread)/stat"), let end = text.lastIndex(of: ")") else {
      self = .ended
      return
    }
    switch text[text.index(after: end)...].first(where: { $0 != " " }) {
    case "R": self = .runs
    case "T", "t": self = .stopped
    case "Z", "X", "x": self = .ended
    default: self = .blocked
    }
  }

  /// Whether a debugger is attached to the process.
  package static func isTraced(_ process: Int32) -> Bool {
    guard let text = ProcFile.read("/proc/\(process)/status") else { return false }
    let line = text.split(separator: "\n").first { $0.hasPrefix("TracerPid:") }
    return line.map { !$0.hasSuffix("\t0") } ?? false
  }
}

/// The system call that a blocked thread is in, and where its stack stands.
package struct ThreadRegisters: Sendable, Hashable {
  /// The number of the call; negative: none.
  package var call: Int
  package var arguments: [UInt64]
  package var stackPointer: UInt64
  package var programCounter: UInt64

  package init(call: Int, arguments: [UInt64] = [], stackPointer: UInt64, programCounter: UInt64) {
    self.call = call
    self.arguments = arguments
    self.stackPointer = stackPointer
    self.programCounter = programCounter
  }

  /// Reads them; nil if the thread runs, is gone, or may not be read.
  package init?(thread: Int32, of process: Int32) {
    guard let text = ProcFile.read("/proc/\(process)/task/\(thread)/syscall") else { return nil }
    let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" })
    let numbers = words.dropFirst().map { UInt64($0.dropFirst(2), radix: 16) ?? 0 }
    guard let first = words.first, let call = Int(first), numbers.count >= 2 else { return nil }
    self.init(
      call: call, arguments: Array(numbers.dropLast(2)), stackPointer: numbers[numbers.count - 2],
      programCounter: numbers[numbers.count - 1])
  }
}

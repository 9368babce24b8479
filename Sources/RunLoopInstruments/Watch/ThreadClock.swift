// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A thread's use of time as counted by the kernel, read without affecting the thread.
package struct ThreadClock: Sendable {
  /// The time on a processor, in nanoseconds.
  package var running: Int64
  /// The time spent runnable without a processor, in nanoseconds.
  package var runnable: Int64
  /// The time of the reading.
  package var time: Int64

  /// Reads the clock; fails if the thread has ended.
  package init?(thread: Int32, of process: Int32, at time: Int64) {
    guard let text = ProcFile.read("/proc/\(process)/task/\(thread)/schedstat") else { return nil }
    let fields = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { Int64($0) }
    guard fields.count >= 2 else { return nil }
    (running, runnable, self.time) = (fields[0], fields[1], time)
  }

  package init(running: Int64, runnable: Int64, time: Int64) {
    (self.running, self.runnable, self.time) = (running, runnable, time)
  }

  /// The maximum time since another reading that the thread spent runnable without a processor.
  ///
  /// - Parameter isRunnable: Whether it is runnable now, because the kernel counts a wait for a processor only when it
  ///   is over.
  package func starvation(since other: ThreadClock, isRunnable: Bool) -> Int64 {
    let without = max(0, time - other.time - (running - other.running))
    return isRunnable ? without : min(without, max(0, runnable - other.runnable))
  }
}

/// How a thread spent its time.
public struct ProcessorShares: Sendable, Codable, Hashable {
  /// The fraction of time on a processor, from 0 to 1.
  public let onCPU: Double
  /// The fraction of time spent runnable without a processor, from 0 to 1.
  public let runnable: Double
  /// The fraction of time spent blocked, from 0 to 1.
  public let blocked: Double

  /// Computes the shares between two readings of a thread's clock.
  init(from first: ThreadClock, to last: ThreadClock) {
    let span = Double(max(1, last.time - first.time))
    onCPU = min(1, max(0, Double(last.running - first.running) / span))
    runnable = min(1 - onCPU, max(0, Double(last.runnable - first.runnable) / span))
    blocked = 1 - onCPU - runnable
  }
}

/// The current state of a thread according to the kernel.
package enum ThreadState: Sendable, Hashable {
  /// Running on a processor or waiting for one.
  case runs
  case blocked
  /// Stopped by a signal or a debugger.
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

/// The current system call and stack pointer of a blocked thread.
package struct ThreadRegisters: Sendable, Hashable {
  /// The number of the system call, or a negative number if there is none.
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

  /// Reads the registers; fails if the thread is running, has ended, or must not be read.
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

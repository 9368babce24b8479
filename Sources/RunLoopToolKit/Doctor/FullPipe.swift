// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import RunLoopLibC

/// A pipe that a process reads, with one of its descendants that waits for that.
struct FullPipe: Equatable {
  let writer: Int32
  /// Whether the writer is a child, and not a child's child.
  let isOfChild: Bool
  /// The descriptors from which the process reads the pipe.
  let readers: [Int32]

  /// Returns the pipes that a process reads and to which its descendants are blocked writing.
  static func all(of process: Int32) -> [FullPipe] {
    let children = FullPipe.children(of: process)
    guard !children.isEmpty else { return [] }
    let own = FullPipe.pipes(of: process)
    return FullPipe.descendants(children).compactMap { writer in
      guard let pipe = FullPipe.writtenPipe(of: writer) else { return nil }
      let readers = own.filter { $0.value == pipe }.keys.sorted().filter { FullPipe.isRead($0, of: process) }
      guard !readers.isEmpty else { return nil }
      return FullPipe(writer: writer, isOfChild: children.contains(writer), readers: readers)
    }
  }

  /// Returns processes and their descendants, nearest first.
  private static func descendants(_ processes: [Int32]) -> [Int32] {
    var found = processes
    // An ID can be used again meanwhile.
    var known = Set(processes)
    var next = 0
    while next < found.count {
      found += FullPipe.children(of: found[next]).filter { known.insert($0).inserted }
      next += 1
    }
    return found
  }

  private static func children(of process: Int32) -> [Int32] {
    Self.numbers(in: "/proc/\(process)/task").flatMap { thread in
      (readWhole("/proc/\(process)/task/\(thread)/children") ?? "").split(separator: " ").compactMap { Int32($0) }
    }.sorted()
  }

  /// Returns the pipe to which a process is blocked writing.
  private static func writtenPipe(of process: Int32) -> String? {
    for thread in numbers(in: "/proc/\(process)/task") {
      guard let registers = ThreadRegisters(thread: thread, of: process), registers.call >= 0,
        let first = registers.arguments.first,
        ["write", "writev", "splice", "sendfile"].contains(SystemCallNames.name(registers.call)),
        let link = ProcFile.link("/proc/\(process)/fd/\(Int32(truncatingIfNeeded: first))"), link.hasPrefix("pipe:")
      else { continue }
      return link
    }
    return nil
  }

  private static func pipes(of process: Int32) -> [Int32: String] {
    var found: [Int32: String] = [:]
    for descriptor in numbers(in: "/proc/\(process)/fd") {
      if let link = ProcFile.link("/proc/\(process)/fd/\(descriptor)"), link.hasPrefix("pipe:") {
        found[descriptor] = link
      }
    }
    return found
  }

  /// Returns whether a descriptor is open for reading.
  private static func isRead(_ descriptor: Int32, of process: Int32) -> Bool {
    let lines = readWhole("/proc/\(process)/fdinfo/\(descriptor)")?.split(separator: "\n") ?? []
    let flags = lines.first { $0.hasPrefix("flags:") }?.split(whereSeparator: { $0 == "\t" || $0 == " " }).last
    return flags.flatMap { Int32($0, radix: 8) }.map { $0 & O_ACCMODE != O_WRONLY } ?? false
  }

  private static func numbers(in directory: String) -> [Int32] {
    ProcFile.names(in: directory).compactMap { Int32($0) }.sorted()
  }
}

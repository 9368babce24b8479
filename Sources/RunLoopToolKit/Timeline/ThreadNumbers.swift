// SPDX-License-Identifier: Apache-2.0

import RunLoopInstruments
import RunLoopLibC

/// Maps the thread IDs inside a container to those outside; must be used on a single thread.
final class ThreadNumbers {
  private let process: Int32
  private var known: [Int32: Int32] = [:]
  /// The IDs that no thread had when they were last looked up.
  private var gone: Set<Int32> = []
  /// The IDs requested since the files were read, whose threads may have started since.
  private var missed: Set<Int32> = []
  private var refreshes = 0
  /// Whether the kernel's files were read since the last refresh.
  private var isCurrent = false
  /// The number of times that the files were read.
  private(set) var reads = 0

  /// The number of refreshes after which `gone` is emptied, because a new thread may reuse an ID.
  private static let refreshesOfGone = 64

  init(of process: Int32) { self.process = process }

  /// Allows the files to be read again for the next unknown ID.
  ///
  /// They are read at most once between refreshes, because there is one per thread, and the records may contain
  /// thousands of IDs that no thread has.
  func refresh() {
    isCurrent = false
    refreshes += 1
    if refreshes % ThreadNumbers.refreshesOfGone == 0 { gone.removeAll() }
  }

  /// Returns the ID outside the container, or the inner ID if the thread has ended.
  func outer(_ inner: Int32) -> Int32 {
    guard inner > 0 else { return inner }
    if let found = known[inner] { return found }
    guard !gone.contains(inner) else { return inner }
    missed.insert(inner)
    if !isCurrent { read() }
    return known[inner] ?? inner
  }

  private func read() {
    isCurrent = true
    reads += 1
    known.removeAll()
    defer {
      gone.formUnion(missed.subtracting(known.keys))
      missed.removeAll()
    }
    for name in ProcFile.names(in: "/proc/\(process)/task") {
      guard let outer = Int32(name) else { continue }
      if let inner = ThreadNumbers.inner(of: "/proc/\(process)/task/\(name)/status") { known[inner] = outer }
    }
  }

  /// Returns the innermost ID in a status file.
  static func inner(of path: String) -> Int32? {
    let line = readWhole(path)?.split(separator: "\n").first { $0.hasPrefix("NSpid:") }
    return line?.split(whereSeparator: { $0 == "\t" || $0 == " " }).last.flatMap { Int32($0) }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// The numbers that the threads of a process in a container have here, by those that they have there.
///
/// One thread.
final class ThreadNumbers {
  private let process: Int32
  private var known: [Int32: Int32] = [:]
  /// Those that no thread had when the kernel's files were read after they were asked for.
  private var gone: Set<Int32> = []
  /// Those that were asked for after the files were read: a thread may have begun since.
  private var missed: Set<Int32> = []
  private var refreshes = 0
  /// Whether the kernel's files were read since the last refresh.
  private var isCurrent = false
  /// How often they were read.
  private(set) var reads = 0

  /// A new thread may get the number of one that is gone.
  private static let refreshesOfGone = 64

  init(of process: Int32) { self.process = process }

  /// Lets the next number that is not known be looked for.
  ///
  /// Between two refreshes the kernel's files are read once at most: there are as many as the process has threads, and
  /// the records may name thousands of numbers that no thread has.
  func refresh() {
    isCurrent = false
    refreshes += 1
    if refreshes % ThreadNumbers.refreshesOfGone == 0 { gone.removeAll() }
  }

  /// The number here; of a thread that is gone, the one that it had there.
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
    guard let list = opendir("/proc/\(process)/task") else { return }
    defer { closedir(list) }
    while let entry = readdir(list) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard let outer = Int32(name) else { continue }
      if let inner = ThreadNumbers.inner(of: "/proc/\(process)/task/\(name)/status") { known[inner] = outer }
    }
  }

  /// The innermost of the numbers in a status file.
  static func inner(of path: String) -> Int32? {
    let line = readWhole(path)?.split(separator: "\n").first { $0.hasPrefix("NSpid:") }
    return line?.split(whereSeparator: { $0 == "\t" || $0 == " " }).last.flatMap { Int32($0) }
  }
}

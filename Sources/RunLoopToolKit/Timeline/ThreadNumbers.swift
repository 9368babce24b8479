// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// The numbers that the threads of a process in a container have here, by those that they have there.
///
/// One thread.
final class ThreadNumbers {
  private let process: Int32
  private var known: [Int32: Int32] = [:]

  init(of process: Int32) { self.process = process }

  /// The number here; of a thread that is gone, the one that it had there.
  func outer(_ inner: Int32) -> Int32 {
    guard inner > 0 else { return inner }
    if let found = known[inner] { return found }
    read()
    if known[inner] == nil { known[inner] = inner }
    return known[inner] ?? inner
  }

  private func read() {
    known.removeAll()
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

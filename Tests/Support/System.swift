// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's information about this process and its threads.
package enum System {
  /// Returns the kernel's name of a thread of this process.
  package static func name(ofThread id: Int32) -> String? {
    var text = contents(of: "/proc/self/task/\(id)/comm")
    if text?.last == "\n" { text?.removeLast() }
    return text
  }

  /// The names of the threads of this process.
  package static var threadNames: [String] {
    guard let directory = opendir("/proc/self/task") else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let id = withUnsafePointer(to: &entry.pointee.d_name.0) { Int32(String(cString: $0)) }
      if let id, let name = name(ofThread: id) { names.append(name) }
    }
    return names
  }

  package static var threadCount: Int {
    guard let directory = opendir("/proc/self/task") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    // Excludes the entries "." and "..".
    while readdir(directory) != nil { count += 1 }
    return count - 2
  }

  /// Whether a thread of this process is blocked in the kernel.
  package static func isAsleep(thread id: Int32) -> Bool {
    // "12 (a name) S 1 …": the name may contain parentheses.
    guard let text = contents(of: "/proc/self/task/\(id)/stat"), let bracket = text.lastIndex(of: ")") else {
      return false
    }
    return text[bracket...].hasPrefix(") S")
  }

  /// Whether a timer descriptor of an epoll set is armed, or nil if the set has none.
  package static func isTimerArmed(inSet epoll: Int32) -> Bool? {
    let watched = contents(of: "/proc/self/fdinfo/\(epoll)")?.split(separator: "\n").compactMap { line in
      line.hasPrefix("tfd:") ? line.split(separator: " ").dropFirst().first : nil
    }
    // "it_value: (0, 0)": the remaining seconds and nanoseconds.
    let timers = watched?.compactMap { number in
      contents(of: "/proc/self/fdinfo/\(number)")?.split(separator: "\n").first { $0.hasPrefix("it_value:") }
    }
    guard let timers, !timers.isEmpty else { return nil }
    return !timers.allSatisfy { $0.hasSuffix("(0, 0)") }
  }

  private static func contents(of path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}

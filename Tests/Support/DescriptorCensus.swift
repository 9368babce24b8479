// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// The number of open descriptors of each kind in this process.
///
/// Only meaningful in a process that runs a single test. Dispatch, which the testing library uses, has an epoll set,
/// an event descriptor and a timer for each of three clocks. It creates a timer on first use, and closes an event
/// descriptor some time after the start. The comparisons therefore tolerate one descriptor fewer of these kinds and
/// up to three more timers, and a test that looks for leaks must create more than three.
package struct DescriptorCensus: Equatable, CustomStringConvertible {
  private var counts: [String: Int] = [:]

  /// Counts the open descriptors, after making Dispatch open its own in the first call.
  package init() {
    Self.warmUp
    guard let directory = opendir("/proc/self/fd") else { return }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard let number = Int32(name), number != dirfd(directory) else { continue }
      var target = [CChar](repeating: 0, count: 256)
      let length = readlink("/proc/self/fd/\(name)", &target, 255)
      // The descriptor may have been closed in the meantime.
      guard length > 0 else { continue }
      var text = String(decoding: target.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
      // A deleted file has the same kind: another process may delete one whose descriptor this process has inherited.
      if text.hasSuffix(Self.removed) { text.removeLast(Self.removed.count) }
      // In "socket:[123]" the kind precedes the number; in "anon_inode:[eventfd]" it is the whole text.
      let kind = text.prefix { $0 != "[" || text.hasPrefix("anon_inode") }
      counts[String(kind), default: 0] += 1
    }
  }

  /// Returns the number of descriptors whose kind contains a text such as "socket:", "inotify" or "pidfd".
  package func count(_ kind: String) -> Int { counts.reduce(0) { $1.key.contains(kind) ? $0 + $1.value : $0 } }

  /// Whether a later census shows no leak, apart from the expected additional descriptors of some kinds.
  package func isFollowed(by now: DescriptorCensus, with more: [String: Int] = [:]) -> Bool {
    Set(counts.keys).union(now.counts.keys).allSatisfy { kind in
      let (before, after) = (counts[kind, default: 0] + more[kind, default: 0], now.counts[kind, default: 0])
      return (before - (Self.fewer[kind] ?? 0)...before + (Self.more[kind] ?? 0)).contains(after)
    }
  }

  /// Whether no kind has more descriptors than before, apart from `more`; it may have fewer.
  package func isWithin(_ before: DescriptorCensus, with more: [String: Int] = [:]) -> Bool {
    counts.allSatisfy { kind, count in
      count <= before.counts[kind, default: 0] + more[kind, default: 0] + (Self.more[kind] ?? 0)
    }
  }

  package var description: String { counts.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ") }

  private static let removed = " (deleted)"

  /// The descriptors that Dispatch may close and open at any time.
  private static let fewer = ["anon_inode:[eventpoll]": 1, "anon_inode:[eventfd]": 1, "anon_inode:[timerfd]": 1]
  private static let more = ["anon_inode:[timerfd]": 3]

  private static let warmUp: Void = {
    let isDone = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now()) { isDone.signal() }
    isDone.wait()
  }()
}

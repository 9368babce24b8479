// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// How many descriptors of each kind this process has open.
///
/// For a process in which a test is alone. Dispatch, which the testing library uses, has an epoll set, a counter and a
/// timer for each of three clocks, makes a timer when it is first needed, and closes a counter at some time after the
/// start. So of these kinds, one less or up to three timers more is as before, and a test that looks for leaks makes
/// more than three.
package struct DescriptorCensus: Equatable, CustomStringConvertible {
  private var counts: [String: Int] = [:]

  /// Counts; for the first time after Dispatch has opened what it will have open.
  package init() {
    Self.warmUp
    guard let directory = opendir("/proc/self/fd") else { return }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard let number = Int32(name), number != dirfd(directory) else { continue }
      var target = [CChar](repeating: 0, count: 256)
      let length = readlink("/proc/self/fd/\(name)", &target, 255)
      // It may have been closed meanwhile.
      guard length > 0 else { continue }
      var text = String(decoding: target.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
      // A file that another process removes meanwhile, of which this one has inherited a descriptor, is no other file.
      if text.hasSuffix(Self.removed) { text.removeLast(Self.removed.count) }
      // "socket:[123]" and "anon_inode:[eventfd]": the kind is before a number, and the whole of what has none.
      let kind = text.prefix { $0 != "[" || text.hasPrefix("anon_inode") }
      counts[String(kind), default: 0] += 1
    }
  }

  /// How many there are of a kind: "socket:", "inotify", "pidfd".
  package func count(_ kind: String) -> Int { counts.reduce(0) { $1.key.contains(kind) ? $0 + $1.value : $0 } }

  /// Whether nothing was left open since, but for so many of some kinds.
  package func isFollowed(by now: DescriptorCensus, with more: [String: Int] = [:]) -> Bool {
    Set(counts.keys).union(now.counts.keys).allSatisfy { kind in
      let (before, after) = (counts[kind, default: 0] + more[kind, default: 0], now.counts[kind, default: 0])
      return (before - (Self.fewer[kind] ?? 0)...before + (Self.more[kind] ?? 0)).contains(after)
    }
  }

  /// Whether no more of any kind is open than before, but for so many of some; what was about to be closed may be gone.
  package func isWithin(_ before: DescriptorCensus, with more: [String: Int] = [:]) -> Bool {
    counts.allSatisfy { kind, count in
      count <= before.counts[kind, default: 0] + more[kind, default: 0] + (Self.more[kind] ?? 0)
    }
  }

  package var description: String { counts.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ") }

  private static let removed = " (deleted)"

  /// How many Dispatch may close and open at any time.
  private static let fewer = ["anon_inode:[eventpoll]": 1, "anon_inode:[eventfd]": 1, "anon_inode:[timerfd]": 1]
  private static let more = ["anon_inode:[timerfd]": 3]

  private static let warmUp: Void = {
    let isDone = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now()) { isDone.signal() }
    isDone.wait()
  }()
}

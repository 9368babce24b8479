// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

// Threads with real loops, on real time. What happens is waited for, and no time is.
extension Bench {
  /// Runs `body` on a new thread and waits until it has returned.
  func onThreads<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    onNewThread { [self] in
      log.write("New threads:")
      return body()
    }
  }

  /// Something that happens once.
  func flag() -> Flag { Flag(meeting) }

  /// What a thread answers to work or to a question that it may refuse.
  func answer(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "accepted"
    } catch {
      return "refused, as \(error)"
    }
  }
}

/// How many different threads, by the kernel's numbers, have been noted.
final class ThreadCount: Sendable {
  private let ids = Mutex<Set<Int32>>([])

  /// Notes the calling thread.
  func note() { ids.withLock { _ = $0.insert(callingThread) } }

  var count: Int { ids.withLock { $0.count } }
}

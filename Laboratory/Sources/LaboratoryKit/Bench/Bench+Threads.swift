// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

// Threads with real loops, on real time. They wait for events, never for durations.
extension Bench {
  /// Runs `body` on a new thread and waits until it has returned.
  func onThreads<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    onNewThread { [self] in
      log.write("New threads:")
      return body()
    }
  }

  /// Creates a one-time event.
  func flag() -> Flag { Flag(meeting) }

  /// Describes a thread's reaction to work or a question that it may reject.
  func answer(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "accepted"
    } catch {
      return "refused, as \(error)"
    }
  }
}

/// The number of distinct threads, by the kernel's numbers, that were recorded.
final class ThreadCount: Sendable {
  private let ids = Mutex<Set<Int32>>([])

  /// Records the calling thread.
  func note() { ids.withLock { _ = $0.insert(callingThread) } }

  var count: Int { ids.withLock { $0.count } }
}

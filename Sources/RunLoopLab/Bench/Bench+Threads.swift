// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

// Threads with real loops, on real time. What happens is waited for, and no time is.
extension Bench {
  /// Runs `body` on a new thread and waits until it has returned.
  ///
  /// The loops of the threads that it makes are broken as the bench says.
  func onThreads<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    onNewThread { [self] in
      log.write("New threads:")
      if !faults.isEmpty { RunLoop.current.setFaults(faults) }
      defer { held.removeAll() }
      return body()
    }
  }

  /// Something that happens once.
  func flag() -> Flag { Flag(meeting) }

  /// Prepares the loop of a thread, on that thread.
  func equip(_ loop: RunLoop) {
    if !faults.isEmpty { loop.setFaults(faults) }
    if faults.contains(.strangersAdded) { loop.add(RunLoop.Source {}, forMode: .default) }
  }

  /// Notes that a thread was made.
  func note(_ thread: Thread) {
    if faults.contains(.threadsHeld) { held.add(thread) }
  }

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

/// Objects that are kept until an experiment is over.
final class HeldObjects: Sendable {
  private let objects = Mutex<[any AnyObject & Sendable]>([])

  func add(_ object: any AnyObject & Sendable) { objects.withLock { $0.append(object) } }

  func removeAll() {
    // They are released outside the lock.
    let released = objects.withLock { objects in
      defer { objects = [] }
      return objects
    }
    withExtendedLifetime(released) {}
  }
}

/// How many different threads, by the kernel's numbers, have been noted.
final class ThreadCount: Sendable {
  private let ids = Mutex<Set<Int32>>([])

  /// Notes the calling thread.
  func note() { ids.withLock { _ = $0.insert(RunLoop.callingThreadID) } }

  var count: Int { ids.withLock { $0.count } }
}

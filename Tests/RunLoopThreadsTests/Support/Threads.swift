// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

extension Thread {
  static func started(_ block: @escaping @Sendable () -> Void) -> Thread {
    let thread = Thread(block: block)
    thread.start()
    return thread
  }

  /// Starts a thread that runs its loop in the default mode until it is stopped.
  static func running(name: String? = nil) -> Thread {
    let thread = Thread {
      RunLoop.current.add(Port(), forMode: .default)
      RunLoop.current.runUntilStopped()
    }
    thread.name = name
    thread.start()
    return thread
  }

  /// Ends a thread that runs its loop.
  func stopLoop() throws {
    try perform { RunLoop.current.stop() }
    try join()
  }

  var isWaiting: Bool { waiting.current != nil }
}

extension ResidentThread {
  /// Waits until work has been posted for a mode that nothing else uses.
  func waitForWork(inMode mode: RunLoop.Mode) {
    waitUntil { runLoop.modes.contains(mode) }
    // The post creates the mode with the lock held, so it is complete once this acquires the lock.
    _ = counts
  }
}

extension ResidentThread.StopReport {
  /// The number of work items in the report.
  var posted: Int { completedCount + cancelledCount + droppedCount + rejectedCount }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

extension Thread {
  /// Makes a thread that runs a block, and starts it.
  static func started(_ block: @escaping @Sendable () -> Void) -> Thread {
    let thread = Thread(block: block)
    thread.start()
    return thread
  }

  /// Makes a thread that runs its loop in the default mode until somebody stops it, and starts it.
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

  /// Whether the thread waits for another.
  var isWaiting: Bool { waiting.current != nil }
}

extension ResidentThread {
  /// Waits until work has been posted that names a mode that nothing else does.
  func waitForWork(inMode mode: RunLoop.Mode) {
    waitUntil { runLoop.modes.contains(mode) }
    // The mode is made within the post: whoever is let in after it finds it done.
    _ = counts
  }
}

extension ResidentThread.StopReport {
  /// All pieces of work of which the report tells.
  var posted: Int { completedCount + cancelledCount + droppedCount + rejectedCount }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport

/// An actor that is isolated to a resident thread.
actor Pinned {
  nonisolated let thread: ResidentThread
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
  private(set) var count = 0

  init(_ thread: ResidentThread) { self.thread = thread }

  var threadID: Int32 { RunLoop.callingThreadID }

  @discardableResult
  func bump() -> Int {
    count += 1
    return count
  }

  func write(_ entry: String, _ log: Log) { log.write(entry) }

  func bump(_ other: Pinned, times: Int) async {
    for _ in 0..<times { await other.bump() }
  }

  /// Increments in steps between which other calls could interfere, if they were not excluded.
  func slowBump() {
    let before = count
    sched_yield()
    count = before + 1
  }

  nonisolated func assumeAndBump() { assumeIsolated { _ = $0.count } }

  func bumpAssumingIsolation() {
    assumeAndBump()
    bump()
  }
}

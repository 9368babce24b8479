// SPDX-License-Identifier: Apache-2.0

import Race
import RunLoopCore
import RunLoopThreads

/// Runs work on another thread, and waits for it with the library's own call.
nonisolated func waits(_ count: Int) {
  guard let thread = try? ResidentThread() else { return print("no thread") }
  // Spinning lasts as long as the other thread takes, so its instructions are not a cost of the call.
  RunLoop.waiting = .sleep
  let counter = Counter()
  let start = nanoseconds()
  for _ in 0..<count { try? thread.performAndWait { _ = counter.add() } }
  report("performAndWait", count, start)
}

/// Like `waits`, with a post and a semaphore that signals its completion.
nonisolated func answers(_ count: Int) {
  guard let thread = try? ResidentThread() else { return print("no thread") }
  RunLoop.waiting = .sleep
  let (loop, gate) = (thread.runLoop, Gate())
  let work: @Sendable () -> Void = { gate.open() }
  let start = nanoseconds()
  for _ in 0..<count {
    loop.perform(work)
    gate.wait()
  }
  report("post and wait", count, start)
}

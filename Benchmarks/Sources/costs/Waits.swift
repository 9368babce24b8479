// SPDX-License-Identifier: Apache-2.0

import Race
import RunLoopCore
import RunLoopThreads

/// Work that another thread does, and for which this one waits by the library's own means.
nonisolated func waits(_ count: Int) {
  guard let thread = try? ResidentThread() else { return print("no thread") }
  // A look lasts as long as the other thread takes, which is no instruction of the call's.
  RunLoop.waiting = .sleep
  let counter = Counter()
  let start = nanoseconds()
  for _ in 0..<count { try? thread.performAndWait { _ = counter.add() } }
  report("performAndWait", count, start)
}

/// The same with a post, for which a semaphore says that it has run.
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

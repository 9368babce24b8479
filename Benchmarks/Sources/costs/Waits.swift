// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import Synchronization

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
  let (loop, semaphore) = (thread.runLoop, Answer())
  let work: @Sendable () -> Void = { semaphore.send() }
  let start = nanoseconds()
  for _ in 0..<count {
    loop.perform(work)
    semaphore.wait()
  }
  report("post and wait", count, start)
}

/// A semaphore.
final class Answer: @unchecked Sendable {
  // Sendable: the C library guards it.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func send() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) != 0 {} }
}

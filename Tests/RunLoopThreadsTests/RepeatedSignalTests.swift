// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization
import Testing

@Suite("Signals of a source that is signalled already") struct RepeatedSignalTests {
  /// The state shared by the threads, atomic but unordered.
  private final class Numbers: Sendable {
    let stored = Atomic<Int>(0)
    let seen = Atomic<Int>(0)
  }

  @Test("a call-out sees the values stored before the last signal, however many signals it handles")
  func order() throws {
    let thread = try ResidentThread(name: "signalled")
    let loop = thread.runLoop
    let numbers = Numbers()
    let source = RunLoop.Source { numbers.seen.store(numbers.stored.load(ordering: .relaxed), ordering: .relaxed) }
    loop.add(source, forMode: .default)
    var missed = 0
    for turn in 1...20_000 {
      source.signal()
      loop.wakeUp()
      // The loop clears the mark of the first signal at about this time.
      numbers.stored.store(turn, ordering: .relaxed)
      source.signal()
      loop.wakeUp()
      // If this completes and the source is not signaled, the loop has called the source.
      repeat { try thread.performAndWait {} } while source.isSignalled
      try thread.performAndWait {}
      if numbers.seen.load(ordering: .relaxed) != turn { missed += 1 }
    }
    #expect(missed == 0)
    thread.stop()
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import Testing

@Suite("A debouncer of thirty seconds, tested in milliseconds")
struct DebouncerTests {
  @Test("a debouncer calls its action once, thirty seconds after the last report")
  func debounces() throws {
    try VirtualTime.onThisThread { time in
      let debouncer = Debouncer(delay: .seconds(30)) { time.log.write("saved") }
      debouncer.report()
      try time.advance(by: .seconds(20))
      debouncer.report()
      try time.advance(by: .seconds(29))
      #expect(time.log.callOuts == "")

      try time.advance(by: .seconds(1))
      #expect(time.log.timedCallOuts == "T@50000 saved@50000")
      #expect(time.nextDeadline == nil)
    }
  }

  @Test("a thousand tests of half a minute take no noticeable time")
  func isFast() throws {
    let began = ContinuousClock.now
    for _ in 0..<1000 { try debounces() }
    // Less than a single one of them would take on the system's clock.
    #expect(began.duration(to: .now) < .seconds(50))
  }

  @Test(
    "the debouncer works the same on a resident thread with sleeping tasks",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func awaits() async throws {
    try await VirtualTime.onResidentThread { time in
      let debouncer = Debouncer(delay: .seconds(30)) { time.log.write("saved") }
      debouncer.report()
      try await Task.sleep(for: .seconds(20))
      debouncer.report()
      try await Task.sleep(for: .seconds(29))
      #expect(time.log.count(of: "saved") == 0)

      try await Task.sleep(for: .seconds(2))
      #expect(time.log.count(of: "saved") == 1)
    }
  }
}

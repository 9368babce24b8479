// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Threads: Foundation's spelling", .timeLimit(.minutes(20)))
struct ThreadFoundationTests {
  @Test("a detached thread runs its block outside the main thread")
  func detached() throws {
    let resident = try ResidentThread()
    #expect(try !resident.performAndWait { Thread.isMainThread })
    let gate = Latch()
    Thread.detachNewThread { gate.open() }
    gate.wait()
  }

  @Test("a sleep for no time returns at once", arguments: [0, -1, -Double.infinity, .nan])
  func noSleep(seconds: Double) {
    let before = Tick.monotonicNow
    Thread.sleep(forTimeInterval: seconds)
    #expect(before <= Tick.monotonicNow)
  }

  @Test("a sleep lasts as long as requested", arguments: [0.001, 0.005])
  func sleeps(seconds: Double) {
    let before = Tick.monotonicNow
    Thread.sleep(forTimeInterval: seconds)
    #expect(before + Int64(saturatingSeconds: seconds) <= Tick.monotonicNow)
  }

  @Test(
    "a thread's priority is mapped to a niceness",
    arguments: [(0.5, 0), (0, 19), (1, -20), (0.25, 10), (0.75, -10), (2, -20), (-1, 19), (.nan, 0)])
  func priority(priority: Double, niceness: Int) {
    let thread = Thread {}
    #expect(thread.threadPriority == 0.5)
    thread.threadPriority = priority
    #expect(thread.configuration.niceness == niceness)
    #expect((0...1).contains(thread.threadPriority))
  }
}

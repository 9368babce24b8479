// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: the slack of their thread", .timeLimit(.minutes(5)))
struct TimerSlackTests {
  @Test("a loop that sleeps until a date has its thread woken in time; one that does not leaves its thread alone")
  func slack() throws {
    let (before, idle, timed) = onNewThread {
      let before = timerSlack()
      let loop = RunLoop.current
      loop.perform { loop.stop() }
      loop.runUntilStopped()
      let idle = timerSlack()
      loop.add(Timer(deadline: loop.now.advanced(by: .milliseconds(1))) { _ in }, forMode: .default)
      loop.run(mode: .default, for: .unlimited)
      return (before, idle, timerSlack())
    }
    let system = try #require(before)
    #expect(idle == system)
    #expect(timed == 1)
  }
}

/// What the system says of the calling thread, in nanoseconds; nil if it says nothing.
private func timerSlack() -> Int? {
  guard let file = fopen("/proc/\(RunLoop.callingThreadID)/timerslack_ns", "r") else { return nil }
  defer { fclose(file) }
  var text = [CChar](repeating: 0, count: 32)
  guard fgets(&text, Int32(text.count), file) != nil else { return nil }
  return strtol(text, nil, 10)
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: the slack of their thread", .timeLimit(.minutes(20)))
struct TimerSlackTests {
  @Test("a loop that sleeps until a date keeps its thread's slack unless asked for another")
  func slack() throws {
    let slacks = onNewThread {
      let loop = RunLoop.current
      /// The thread's slack after a sleep until a date.
      ///
      /// On a busy machine the date may pass before the sleep, hence the retries.
      func slackAfterSleep(expecting expected: Int?) -> Int? {
        for _ in 0..<1000 {
          loop.add(Timer(deadline: loop.now.advanced(by: .milliseconds(1))) { _ in }, forMode: .default)
          loop.run(mode: .default, for: .unlimited)
          if timerSlack() == expected { break }
        }
        return timerSlack()
      }
      let system = timerSlack()
      var slacks = [system, slackAfterSleep(expecting: system)]
      for (slack, expected) in [
        (.nanoseconds(1), 1), (.microseconds(200), 200_000), (.seconds(-1), 1), (nil, system),
      ] as [(Duration?, Int?)] {
        loop.timerSlack = slack
        slacks.append(slackAfterSleep(expecting: expected))
      }
      return slacks
    }
    let system = try #require(slacks[0])
    #expect(slacks == [system, system, 1, 200_000, 1, system])
  }

  @Test("the slack reads back as applied")
  func readBack() {
    let loop = RunLoop.current
    #expect(loop.timerSlack == nil)
    loop.timerSlack = .microseconds(7)
    #expect(loop.timerSlack == .microseconds(7))
    loop.timerSlack = .zero
    #expect(loop.timerSlack == .nanoseconds(1))
    // Values are clamped, because with a longer slack a sleep might never end.
    loop.timerSlack = .nanoseconds(Int64.max)
    #expect(loop.timerSlack == .seconds(60))
    loop.timerSlack = nil
    #expect(loop.timerSlack == nil)
  }
}

/// The calling thread's slack in nanoseconds according to the system, or nil if unknown.
private func timerSlack() -> Int? {
  guard let file = fopen("/proc/\(RunLoop.callingThreadID)/timerslack_ns", "r") else { return nil }
  defer { fclose(file) }
  var text = [CChar](repeating: 0, count: 32)
  guard fgets(&text, Int32(text.count), file) != nil else { return nil }
  return strtol(text, nil, 10)
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The timeout of a run", .timeLimit(.minutes(20)))
struct TimeoutTests {
  @Test("a timeout of zero or less is one pass without a wait", .rule(.r3, .r12), arguments: [0, -5, -Double.infinity])
  func noTime(seconds: Double) {
    let log = record { _, loop, log in
      loop.keepAlive()
      log.write("\(loop.run(mode: .default, for: seconds))")
    }
    #expect(log == "E BT BS X timedOut")
  }

  @Test(
    "no duration, or less, is one pass without a wait", .rule(.r3, .r12), arguments: [Duration.zero, .nanoseconds(-1)])
  func noDuration(timeout: Duration) {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.run(log, for: timeout)
    }
    #expect(log == "E BT BS X timedOut")
  }

  @Test("the shortest timeout still waits", .rule(.r3))
  func shortestTime() {
    let log = record { _, loop, log in
      loop.keepAlive()
      log.write("\(loop.run(mode: .default, for: 1e-10))")
      loop.run(log, for: Duration(secondsComponent: 0, attosecondsComponent: 1))
    }
    #expect(log == "E BT BS BW AW X timedOut E BT BS BW AW X timedOut")
  }

  @Test("one pass without a wait fires what is due", .rule(.r3))
  func noTimeFires() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS T X timedOut")
  }

  @Test("one pass without a wait handles a source, or is timed out", .rule(.r12))
  func noTimeHandles() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled { log.write("a") }
      loop.run(log, for: .zero)
      loop.signalled { log.write("b") }
      loop.run(log, for: .zero, returnAfterSourceHandled: true)
    }
    #expect(log == "a timedOut b handledSource")
  }

  @Test("one pass without a wait is timed out even if it was stopped and nothing is left", .rule(.r12))
  func noTimeStopped() {
    let log = record { _, loop, log in
      loop.after(.zero) { _ in
        log.write("T")
        loop.stop()
      }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS T X timedOut")
  }

  @Test("a mode that is empty before is finished, whatever the timeout", .rule(.r12, .r24))
  func noTimeEmpty() {
    let log = record { _, loop, log in loop.run(log, for: .zero) }
    #expect(log == "finished")
  }

  @Test("a stop at the entry counts before a zero timeout", .rule(.r12, .r37))
  func noTimeStoppedAtEntry() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.once(.entry) { loop.stop() }
      loop.run(log, for: .zero)
    }
    #expect(log == "E X stopped")
  }

  @Test(
    "more than sixteen years in seconds, or NaN, means no timeout", .rule(.r13),
    arguments: [.infinity, .nan, 504_911_232.5, 504_911_233, 1e10, .greatestFiniteMagnitude])
  func endless(seconds: Double) {
    let result = onVirtualTime { time, loop in
      loop.keepAlive()
      time.at(.seconds(2_000_000_000)) { loop.stop() }
      return loop.run(mode: .default, for: seconds)
    }
    #expect(result == .stopped)
  }

  @Test(
    "more than sixteen years means no timeout", .rule(.r13),
    arguments: [.seconds(504_911_233), .milliseconds(504_911_232_001), Duration.seconds(Int64.max)])
  func endlessDuration(timeout: Duration) {
    let result = onVirtualTime { time, loop in
      loop.keepAlive()
      time.at(.seconds(2_000_000_000)) { loop.stop() }
      return loop.run(mode: .default, for: timeout)
    }
    #expect(result == .stopped)
  }

  @Test("a timeout of sixteen years is counted", .rule(.r13, .r14))
  func longest() {
    let log = record(observing: nil) { time, loop, log in
      loop.keepAlive()
      log.write("\(loop.run(mode: .default, for: 504_911_232.0)) \(time.milliseconds)")
    }
    #expect(log == "timedOut 504911232000")
  }

  @Test("the timeout counts from the run's entry", .rule(.r14))
  func countsFromEntry() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.entry) { time.advance(by: .milliseconds(4)) }
      time.at(.milliseconds(7)) { loop.wakeUp() }
      loop.run(log, for: .milliseconds(10))
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW BT BS BW AW X timedOut 10")
  }

  @Test("a long call-out overruns the timeout, and the pass is completed", .rule(.r14))
  func overrun() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.perform {
        log.write("B")
        time.advance(by: .milliseconds(30))
      }
      loop.run(log, for: .milliseconds(10))
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS B BW AW X timedOut 30")
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: repeating", .timeLimit(.minutes(20)))
struct TimerRepeatTests {
  @Test("a repeating timer fires at every date of its phase", .rule(.r97))
  func phase() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10)) { _ in time.stamp(log, "T") }
      loop.run(mode: .default, for: .milliseconds(35))
      return log.text
    }
    #expect(log == "T10 T20 T30")
  }

  @Test("a missed date is skipped, not made up, and the phase is kept", .rule(.r97))
  func missed() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(20)) { _ in time.stamp(log, "T") }
      loop.perform { time.advance(by: .milliseconds(70)) }
      loop.run(mode: .default, for: .milliseconds(105))
      return log.text
    }
    #expect(log == "T70 T80 T100")
  }

  @Test("dates that pass during the call-out are skipped", .rule(.r97))
  func longCallOut() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(20)) { _ in
        time.stamp(log, "T")
        if time.milliseconds == 20 { time.advance(by: .milliseconds(50)) }
      }
      loop.run(mode: .default, for: .milliseconds(105))
      return log.text
    }
    #expect(log == "T20 T80 T100")
  }

  @Test("a loop that was idle for ten periods fires the timer once", .rule(.r97))
  func idle() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.every(.milliseconds(10)) { _ in time.stamp(log, "T") }
      time.advance(by: .milliseconds(105))
      loop.run(mode: .default, for: .zero)
      loop.run(mode: .default, for: .zero)
      log.write("next\(timer.deadline.milliseconds)")
      return log.text
    }
    #expect(log == "T105 next110")
  }

  @Test("a timer that is called exactly at one of its dates moves to the next one", .rule(.r97))
  func onTheDate() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.every(.milliseconds(20)) { _ in time.stamp(log, "T") }
      time.advance(by: .milliseconds(80))
      loop.run(mode: .default, for: .zero)
      log.write("next\(timer.deadline.milliseconds)")
      return log.text
    }
    #expect(log == "T80 next100")
  }

  @Test("a microsecond timer that has slept for a year catches up in one step", .rule(.m12))
  func catchingUp() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 0, every: .nanoseconds(1)) { _ in log.write("T") }
      loop.add(timer, forMode: .default)
      time.advance(by: .seconds(365 * 86_400))
      loop.run(mode: .default, for: .zero)
      log.write("\(Tick(timer.deadline).nanoseconds - time.now.nanoseconds)")
      return log.text
    }
    #expect(log == "T 1000")
  }

  @Test("in the call-out the date is the one for which it fires; after it, the next", .rule(.r98))
  func dateInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.every(.milliseconds(20)) { timer in log.write("in\(timer.deadline.milliseconds)") }
      time.advance(by: .milliseconds(70))
      loop.run(mode: .default, for: .zero)
      log.write("after\(timer.deadline.milliseconds)")
      return log.text
    }
    #expect(log == "in20 after80")
  }

  @Test("the mode's next date is that of a timer that is being called, as long as it is", .rule(.r32, .r98))
  func nextDeadlineInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let next: @Sendable () -> String = {
        loop.nextDeadline(forMode: .default).map { "\($0.milliseconds)" } ?? "none"
      }
      loop.every(.milliseconds(20)) { _ in log.write("in \(next())") }
      log.write(next())
      loop.run(mode: .default, for: .milliseconds(30))
      log.write("after \(next())")
      return log.text
    }
    #expect(log == "20 in 20 after 40")
  }

  @Test("the next date of a repeating timer's phase", .rule(.r97))
  func nextOfPhase() {
    func next(_ tick: Int64, _ now: Int64, _ interval: Int64) -> Int64 {
      Tick(nanoseconds: tick).next(after: Tick(nanoseconds: now), every: interval).nanoseconds
    }
    #expect(next(0, 0, 10) == 10)
    #expect(next(0, 9, 10) == 10)
    #expect(next(0, 10, 10) == 20)
    #expect(next(3, 10, 10) == 13)
    #expect(next(3, 13, 10) == 23)
    #expect(next(-25, 10, 10) == 15)
    #expect(next(0, .max - 5, 10) == .max)
    #expect(next(0, 5, .max) == .max)
    #expect(next(.min, .max - 1000, 10) > .max - 1000)
  }
}

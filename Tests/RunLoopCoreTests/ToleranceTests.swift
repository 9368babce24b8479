// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: tolerance", .timeLimit(.minutes(20)))
struct ToleranceTests {
  @Test("timers whose ranges overlap share one wake-up, and the saving is counted", .rule(.r99f, .m8))
  func shared() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 10, tolerance: .milliseconds(10)) { _ in time.stamp(log, "A") }, forMode: .default)
      loop.add(Timer(at: 15) { _ in time.stamp(log, "B") }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return "\(log.text) sleeps \(time.sleepCount) saved \(loop.statistics.savedWakeUpCount)"
    }
    #expect(log == "A15 B15 sleeps 1 saved 1")
  }

  @Test("three repeating timers of near phases wake the loop once a period", .rule(.r99f, .m8))
  func repeating() {
    func run(_ tolerance: Duration) -> String {
      onVirtualTime { time, loop in
        let log = Log()
        for (name, date) in [("A", 10), ("B", 12), ("C", 14)] {
          let timer = Timer(at: date, every: .milliseconds(10), tolerance: tolerance) { _ in time.stamp(log, name) }
          loop.add(timer, forMode: .default)
        }
        loop.run(mode: .default, for: .milliseconds(26))
        return "\(log.text) sleeps \(time.sleepCount) saved \(loop.statistics.savedWakeUpCount)"
      }
    }
    #expect(run(.milliseconds(5)) == "A15 B15 C15 A25 B25 C25 sleeps 3 saved 4")
    #expect(run(.zero) == "A10 B12 C14 A20 B22 C24 sleeps 7 saved 0")
  }

  @Test("the phase is kept, however late the tolerance lets a timer fire", .rule(.r99f, .m8))
  func phase() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10), tolerance: .milliseconds(3)) { timer in
        time.stamp(log, "\(timer.deadline.milliseconds)@")
      }
      loop.run(mode: .default, for: .milliseconds(35))
      return log.text
    }
    #expect(log == "10@13 20@23 30@33")
  }

  @Test("of a repeating timer at most half the interval is used", .rule(.r99f, .m8))
  func halfTheInterval() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10), tolerance: .milliseconds(100)) { _ in time.stamp(log, "T") }
      loop.run(mode: .default, for: .milliseconds(36))
      return log.text
    }
    #expect(log == "T15 T25 T35")
  }

  @Test("of a timer that fires once all of it is used, and a negative one is none", .rule(.r99f, .m8))
  func oneShot() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 10, tolerance: .milliseconds(-5)) { _ in time.stamp(log, "A") }, forMode: .default)
      loop.add(Timer(at: 20, tolerance: .milliseconds(30)) { _ in time.stamp(log, "B") }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "A10 B50")
  }

  @Test(
    "the tolerance reads back as it is used: of a repeating timer at most half its interval, never negative once",
    .rule(.r99f, .m8))
  func readsBack() {
    let once = Timer(at: 0) { _ in }
    once.tolerance = 3
    #expect(once.tolerance == 3)
    once.tolerance = -3
    #expect(once.tolerance == 0)
    once.tolerance = .nan
    #expect(once.tolerance == 0)
    let repeating = Timer(at: 0, every: .seconds(4)) { _ in }
    repeating.tolerance = 1
    #expect(repeating.tolerance == 1)
    repeating.tolerance = 3
    #expect(repeating.tolerance == 2)
  }

  @Test("another wake-up of the loop within the range also fires the timer", .rule(.r99f, .m8))
  func wokenWithin() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log, [.beforeWaiting, .afterWaiting])
      loop.add(Timer(at: 10, tolerance: .milliseconds(10)) { _ in time.stamp(log, "T") }, forMode: .default)
      time.at(.milliseconds(5)) { loop.wakeUp() }
      time.at(.milliseconds(12)) { loop.wakeUp() }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "BW AW BW AW T12")
  }

  @Test("timers of one wake-up fire by date, not by the end of their range", .rule(.r99f, .m8))
  func byDate() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 12, tolerance: .milliseconds(1)) { _ in time.stamp(log, "B") }, forMode: .default)
      loop.add(Timer(at: 10, tolerance: .milliseconds(20)) { _ in time.stamp(log, "A") }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "A13 B13")
  }

  @Test("a timer that is not due yet does not fire with the others", .rule(.r99f, .m8))
  func notDue() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 14, tolerance: .milliseconds(10)) { _ in time.stamp(log, "B") }, forMode: .default)
      loop.add(Timer(at: 10, tolerance: .milliseconds(2)) { _ in time.stamp(log, "A") }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return "\(log.text) saved \(loop.statistics.savedWakeUpCount)"
    }
    #expect(log == "A12 B24 saved 0")
  }

  @Test("a tolerance that is taken away during the sleep takes effect at once", .rule(.r99f, .m8))
  func takenAway() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 10, tolerance: .milliseconds(10)) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      time.at(.milliseconds(11)) { timer.tolerance = 0 }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "T11")
  }

  @Test("a tolerance that is set before the run is used, and can be taken away again", .rule(.r99f, .m8))
  func set() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let first = loop.after(.milliseconds(10)) { _ in time.stamp(log, "A") }
      let second = loop.after(.milliseconds(30)) { _ in time.stamp(log, "B") }
      first.tolerance = 0.005
      second.tolerance = 0.005
      second.tolerance = 0
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "A15 B30")
  }

  @Test("a run does not outlast its time for the sake of a tolerance", .rule(.r14, .r99f, .m8))
  func timeout() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 10, tolerance: .milliseconds(10)) { _ in time.stamp(log, "T") }, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(12)))")
      return log.text
    }
    #expect(log == "T12 timedOut")
  }

  @Test("dates that passed while the loop was busy count as no saving", .rule(.m8))
  func busy() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      for date in [10, 12, 14] {
        let timer = Timer(at: date, tolerance: .milliseconds(1)) { _ in time.stamp(log, "T") }
        loop.add(timer, forMode: .default)
      }
      loop.perform { time.advance(by: .milliseconds(50)) }
      loop.run(mode: .default, for: .seconds(1))
      return "\(log.text) saved \(loop.statistics.savedWakeUpCount)"
    }
    #expect(log == "T50 T50 T50 saved 0")
  }

  @Test("a sleep that is interrupted without a pass counts as one: what it saved is counted", .rule(.m8))
  func interrupted() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(at: 10, tolerance: .milliseconds(10)) { _ in time.stamp(log, "A") }, forMode: .default)
      loop.add(Timer(at: 15) { _ in time.stamp(log, "B") }, forMode: .default)
      time.at(.milliseconds(12)) { loop.perform(inModes: ["other"]) {} }
      loop.run(mode: .default, for: .seconds(1))
      return "\(log.text) saved \(loop.statistics.savedWakeUpCount)"
    }
    #expect(log == "A15 B15 saved 1")
  }
}

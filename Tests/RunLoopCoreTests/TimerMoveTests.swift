// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: giving them a date", .timeLimit(.minutes(20)))
struct TimerMoveTests {
  @Test("a date that is set in the call-out is kept and starts a new phase", .rule(.r99))
  func inside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        if time.milliseconds == 10 { timer.deadline = time.instant(25) }
      }
      loop.run(mode: .default, for: .milliseconds(50))
      return log.text
    }
    #expect(log == "T10 T25 T35 T45")
  }

  @Test("a past date that is set in the call-out means once more, in the next pass", .rule(.r99))
  func pastInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log, [.beforeTimers, .afterWaiting])
      let isFirst = Box(true)
      loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        guard isFirst.value else { return }
        isFirst.value = false
        timer.deadline = time.instant(1)
        log.write("reads\(timer.deadline.milliseconds)")
      }
      loop.run(mode: .default, for: .milliseconds(25))
      return log.text
    }
    #expect(log == "BT AW T10 reads1 BT AW T10 BT AW T20 BT AW")
  }

  @Test("a timer in no mode just records a new date, and an invalid one does not", .rule(.r99))
  func unscheduled() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 10) { _ in time.stamp(log, "T") }
      timer.deadline = time.instant(30)
      log.write("\(timer.deadline.milliseconds)")
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      let last = timer.deadline
      timer.deadline = time.instant(99)
      log.write("\(timer.deadline == last)")
      return log.text
    }
    #expect(log == "30 T30 true")
  }

  @Test("an earlier date takes effect on a sleeping loop, without a pass before it", .rule(.r50, .r51, .r99, .m25))
  func earlier() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      let timer = loop.after(.milliseconds(20)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(5)) { timer.deadline = time.instant(8) }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW T8 X")
  }

  @Test("a past date fires on a sleeping loop at once", .rule(.r50, .r99))
  func past() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      let timer = loop.after(.milliseconds(20)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(5)) { timer.deadline = time.instant(0) }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW T5 X")
  }

  @Test("a later date on a sleeping loop leaves no pass at the old one", .rule(.r99, .m20))
  func later() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(5)) { timer.deadline = time.instant(20) }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW T20 X")
  }

  @Test(
    "a timer that ends or leaves during the sleep leaves no pass at its date", .rule(.r99e, .m20),
    arguments: [false, true])
  func gone(invalidates: Bool) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      loop.keepAlive()
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(5)) {
        if invalidates { timer.invalidate() } else { loop.remove(timer, forMode: .default) }
      }
      loop.run(mode: .default, for: .milliseconds(30))
      time.stamp(log, "at")
      return log.text
    }
    #expect(log == "E BT BS BW AW X at30")
  }

  @Test("an infinite date silences a timer until another date is set", .rule(.r99))
  func never() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      timer.deadline = Tick.never.instant
      log.write("\(loop.run(mode: .default, for: .milliseconds(30)))")
      time.at(.milliseconds(40)) { timer.deadline = time.instant(50) }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "timedOut T50 finished")
  }

  @Test("a timer in several modes moves in all of them", .rule(.r99, .r99b))
  func allModes() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 10, every: .milliseconds(100)) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: "A")
      loop.add(timer, forMode: "B")
      timer.deadline = time.instant(20)
      for mode in ["A", "B"] as [RunLoop.Mode] {
        log.write("\(loop.nextDeadline(forMode: mode)?.milliseconds ?? -1)")
      }
      loop.run(mode: "B", for: .milliseconds(50))
      for mode in ["A", "B"] as [RunLoop.Mode] {
        log.write("\(loop.nextDeadline(forMode: mode)?.milliseconds ?? -1)")
      }
      return log.text
    }
    #expect(log == "20 20 T20 120 120")
  }

  @Test("two loops that repeatedly want a timer never both have it", .rule(.r99b))
  func wanted() {
    let timer = Timer(deadline: SuspendingClock.now.advanced(by: .seconds(3600))) { _ in }
    let threads = (0..<2).map { _ in
      startThread {
        let loop = RunLoop.current
        for turn in 0..<3000 {
          guard loop.add(timer, forMode: .default) else { continue }
          // A third thread moves it too, while it is in this loop's heap.
          timer.deadline = SuspendingClock.now.advanced(by: .seconds(3600 + turn % 7))
          precondition(loop.contains(timer, forMode: .default), "the timer was taken away")
          loop.remove(timer, forMode: .default)
        }
        loop.table.withLock { table in
          let mode = table.mode(.default)
          mode.timers.checkInvariants()
          precondition(mode.timerCount == 0, "a timer is left")
        }
      }
    }
    let mover = startThread {
      for turn in 0..<3000 { timer.deadline = SuspendingClock.now.advanced(by: .seconds(3600 + turn % 5)) }
    }
    for thread in threads + [mover] { thread.result() }
    #expect(timer.isValid && timer.holder == nil)
  }
}

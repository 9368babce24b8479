// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: their life", .timeLimit(.minutes(20)))
struct TimerTests {
  @Test("an invalid timer keeps its last date", .rule(.r99c, .m27))
  func keepsDate() {
    let (before, after) = onVirtualTime { time, loop in
      let timer = loop.after(.seconds(5)) { _ in }
      let before = timer.deadline
      timer.invalidate()
      timer.deadline = loop.waiter.now.instant
      return (before, timer.deadline)
    }
    #expect(before == after)
  }

  @Test("a repeating timer that is ended in its call-out keeps the date for which it fired", .rule(.m27))
  func keepsDateOfLastCall() {
    let milliseconds = onVirtualTime { _, loop in
      let timer = loop.every(.milliseconds(10)) { $0.invalidate() }
      loop.run(mode: .default, for: .seconds(1))
      return timer.deadline.milliseconds
    }
    #expect(milliseconds == 10)
  }

  @Test("a timer that fires once is valid and contained in its call-out, and neither after it", .rule(.r96))
  func oneShotLife() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let timer = Timer(at: 5) { timer in
        log.write("\(timer.isValid)")
        for mode in [RunLoop.Mode.default, .common] { log.write("\(loop.contains(timer, forMode: mode))") }
      }
      loop.add(timer, forMode: .common)
      loop.run(mode: .default, for: .seconds(1))
      log.write("| \(timer.isValid)")
      for mode in [RunLoop.Mode.default, .common] { log.write("\(loop.contains(timer, forMode: mode))") }
      return log.text
    }
    #expect(log == "true true true | false false false")
  }

  @Test("a one-shot timer ends even if its call-out sets a new date", .rule(.r96))
  func oneShotMoved() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      let timer = loop.after(.milliseconds(5)) { timer in
        time.stamp(log, "T")
        timer.deadline = time.instant(10)
      }
      loop.run(mode: .default, for: .milliseconds(50))
      log.write("\(timer.isValid)")
      return log.text
    }
    #expect(log == "T5 false")
  }

  @Test("a run is finished by the pass in which its last timer fires", .rule(.r29, .r96))
  func lastTimer() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "E BT BS BW AW T X finished")
  }

  @Test(
    "without an interval, or with one that is not positive, a timer fires once", .rule(.r95, .m12),
    arguments: [nil, 0, -1, -10_000])
  func notRepeating(seconds: Int?) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      let timer = Timer(at: 5, every: seconds.map { .seconds($0) }) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      log.write("\(timer.timeInterval)")
      loop.run(mode: .default, for: .milliseconds(50))
      return log.text
    }
    #expect(log == "0.0 T5")
  }

  @Test("an interval between zero and a microsecond becomes one microsecond", .rule(.m12))
  func tinyInterval() {
    func interval(_ duration: Duration) -> Double { Timer(at: 0, every: duration) { _ in }.timeInterval }
    #expect(interval(.nanoseconds(1)) == 1e-6)
    #expect(interval(.nanoseconds(999)) == 1e-6)
    #expect(interval(Duration(secondsComponent: 0, attosecondsComponent: 1)) == 1e-6)
    #expect(interval(.nanoseconds(1000)) == 1e-6)
    #expect(interval(.nanoseconds(1500)) == 1.5e-6)
    #expect(Timer(timeInterval: 1e-12, repeats: true) { _ in }.timeInterval == 1e-6)
  }

  @Test(
    "in Foundation's spelling an interval that is not positive means 0.0001 seconds", .rule(.m12), arguments: [0.0, -3])
  func foundationInterval(seconds: Double) {
    let log = onVirtualTime { time, _ in
      let repeating = Timer(timeInterval: seconds, repeats: true) { _ in }
      let once = Timer(timeInterval: seconds, repeats: false) { _ in }
      let ahead = [repeating, once].map { ($0.deadline - time.instant(0)) / .microseconds(1) }
      return "\(repeating.timeInterval) \(once.timeInterval) \(ahead)"
    }
    #expect(log == "0.0001 0.0 [100.0, 100.0]")
  }

  @Test("a NaN interval is a programming error", .rule(.m12))
  func notANumber() async {
    await #expect(processExitsWith: .failure) {
      _ = Timer(timeInterval: .nan, repeats: false) { _ in }
    }
  }

  @Test("an infinite interval or date is never due", .rule(.m12))
  func endless() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(timeInterval: .infinity, repeats: true) { _ in log.write("T") }, forMode: .default)
      loop.add(Timer(deadline: Tick.never.instant) { _ in log.write("T") }, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .seconds(1_000_000)))")
      log.write("\(time.now.nanoseconds)")
      return log.text
    }
    #expect(log == "timedOut 1000000000000000")
  }

  @Test("a timer by interval fires first after its interval", .rule(.m18))
  func firstFire() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Timer(timeInterval: 0.02, repeats: false) { _ in time.stamp(log, "A") }, forMode: .default)
      let timer = Timer.scheduledTimer(withTimeInterval: 0.03, repeats: true) { timer in
        time.stamp(log, "B")
        if time.milliseconds == 60 { timer.invalidate() }
      }
      log.write("\(loop.contains(timer, forMode: .default))")
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "true A20 B30 B60 finished")
  }

  @Test("invalidate takes a timer out of all modes, once and for all, and releases its block", .rule(.r99c, .m22))
  func invalidate() {
    let text = onVirtualTime { _, loop in
      let modes: [RunLoop.Mode] = [.default, .common, "A"]
      let entries = Log()
      let timer = { [token = Token(entries)] in Timer(at: 5, every: .seconds(1)) { _ in token.touch() } }()
      loop.add(timer, forMode: .common)
      loop.add(timer, forMode: "A")
      entries.write(modes.map { "\(loop.contains(timer, forMode: $0))" }.joined(separator: " "))
      timer.invalidate()
      timer.invalidate()
      entries.write(modes.map { "\(loop.contains(timer, forMode: $0))" }.joined(separator: " "))
      entries.write("\(timer.isValid) \(loop.add(timer, forMode: .default) as Bool) \(loop.run(mode: "A", for: .zero))")
      return entries.text
    }
    #expect(text == "true true true released false false false false false finished")
  }

  @Test(
    "a timer that is invalidated in its own call-out keeps its block until the call-out has returned",
    .rule(.r99c, .m22))
  func invalidateInside() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      do {
        let token = Token(log)
        loop.every(.milliseconds(5)) { [token] timer in
          timer.invalidate()
          log.write("T")
          token.touch()
          log.write("end")
        }
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "T end released finished")
  }

  @Test(
    "the block of a one-shot timer is released after its call-out, even if the timer is retained", .rule(.m22))
  func releasedAfterFiring() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let timer = { [token = Token(log)] in loop.after(.milliseconds(5)) { _ in token.touch() } }()
      loop.keepAlive()
      loop.once(.afterWaiting) { log.write("AW") }
      loop.run(mode: .default, for: .milliseconds(20))
      log.write("kept \(timer.isValid)")
      return log.text
    }
    #expect(log == "AW released kept false")
  }

  @Test("in several modes, a timer fires in whichever runs, once for each date", .rule(.r99b))
  func manyModes() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 10, every: .milliseconds(10)) { _ in
        time.stamp(log, loop.currentMode?.rawValue ?? "none")
      }
      loop.add(timer, forMode: "A")
      loop.add(timer, forMode: "B")
      loop.run(mode: "A", for: .milliseconds(15))
      loop.run(mode: "B", for: .milliseconds(10))
      loop.run(mode: "B", for: .zero)
      loop.run(mode: "A", for: .milliseconds(10))
      return log.text
    }
    #expect(log == "A10 B20 A30")
  }

  @Test("a second add to a mode changes nothing, and one remove undoes both", .rule(.r99b))
  func duplicate() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.keepAlive()
      let timer = loop.every(.milliseconds(10)) { _ in log.write("T") }
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(15))
      loop.remove(timer, forMode: .default)
      log.write("\(loop.contains(timer, forMode: .default))")
      loop.remove(timer, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(50))
      return log.text
    }
    #expect(log == "T false")
  }

  @Test(
    "a timer is of one loop until it has left its last mode there; another loop rejects it and counts it",
    .rule(.r99b, .r99g, .m21))
  func oneLoop() {
    let log = onVirtualTime { time, loop in
      let other = RunLoop(threadID: 0, waiter: time)
      defer { other.end() }
      let log = Log()
      let timer = Timer(at: 10) { _ in }
      loop.add(timer, forMode: .common)
      loop.add(timer, forMode: "A")
      log.write("\(other.add(timer, forMode: .default) as Bool) \(other.add(timer, forMode: .common) as Bool)")
      log.write("\(other.contains(timer, forMode: .default)) \(other.contains(timer, forMode: .common))")
      loop.remove(timer, forMode: .common)
      log.write("\(other.add(timer, forMode: .default) as Bool)")
      loop.remove(timer, forMode: "A")
      log.write("| \(other.add(timer, forMode: .default) as Bool) \(loop.add(timer, forMode: .default) as Bool)")
      log.write("\(other.contains(timer, forMode: .default)) \(loop.contains(timer, forMode: .default))")
      log.write("| \(other.statistics.rejectionCount) \(loop.statistics.rejectionCount)")
      return log.text
    }
    #expect(log == "false false false false false | true false true false | 3 1")
  }

  @Test("a timer removed in its own call-out stays valid, moves to its next date, and can be added again", .rule(.r99d))
  func removeInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        if time.milliseconds == 10 { loop.remove(timer, forMode: .default) }
      }
      log.write("\(loop.run(mode: .default, for: .milliseconds(100)))")
      log.write("\(timer.isValid) \(timer.deadline.milliseconds)")
      time.advance(by: .milliseconds(25))
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(20))
      return log.text
    }
    #expect(log == "T10 finished true 20 T35 T40 T50")
  }

  @Test("a timer removed and added again in its own call-out continues to repeat", .rule(.r99d))
  func readdInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        loop.remove(timer, forMode: .default)
        loop.add(timer, forMode: .default)
      }
      loop.run(mode: .default, for: .milliseconds(35))
      return log.text
    }
    #expect(log == "T10 T20 T30")
  }

  @Test("a timer may change to another loop in its own call-out", .rule(.r99d))
  func changeLoopInside() {
    let log = onVirtualTime { time, loop in
      let other = RunLoop(threadID: 0, waiter: time)
      defer { other.end() }
      let log = Log()
      loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        loop.remove(timer, forMode: .default)
        log.write("\(other.add(timer, forMode: .default) as Bool)")
      }
      log.write("\(loop.run(mode: .default, for: .milliseconds(100)))")
      log.write("\(other.nextDeadline(forMode: .default)?.milliseconds ?? -1)")
      return log.text
    }
    #expect(log == "T10 true finished 20")
  }

  @Test(
    "a timer that another thread removes or ends during the sleep does not fire", .rule(.r28c, .r99e),
    arguments: [false, true])
  func removedDuringSleep(invalidates: Bool) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = loop.after(.milliseconds(10)) { _ in log.write("T") }
      time.at(.milliseconds(5)) {
        if invalidates { timer.invalidate() } else { loop.remove(timer, forMode: .default) }
      }
      loop.observe(log)
      log.write("\(loop.run(mode: .default, for: .milliseconds(30)))")
      time.stamp(log, "at")
      return log.text
    }
    #expect(log == "E BT BS BW AW X timedOut at30")
  }

  @Test("a timer that is added during the sleep fires at its date, without a pass before it", .rule(.r50, .r92))
  func addedDuringSleep() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.after(.milliseconds(3)) { _ in time.stamp(log, "T") } }
      loop.run(mode: .default, for: .milliseconds(20))
      return log.text
    }
    #expect(log == "E BT BS BW AW T8 BT BS BW AW X")
  }

  @Test(
    "fire calls the block at once; a repeating timer keeps its date, a one-shot ends, an invalid one is silent",
    .rule(.r99c))
  func fireByHand() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let repeating = loop.every(.milliseconds(10)) { _ in time.stamp(log, "R") }
      let once = loop.after(.milliseconds(10)) { _ in time.stamp(log, "O") }
      repeating.fire()
      log.write("\(repeating.deadline.milliseconds)")
      once.fire()
      once.fire()
      log.write("\(once.isValid) \(loop.contains(once, forMode: .default))")
      loop.run(mode: .default, for: .milliseconds(15))
      repeating.invalidate()
      repeating.fire()
      return log.text
    }
    #expect(log == "R0 10 O0 false false R10")
  }

  @Test("a timer that is in no mode never fires", .rule(.r92))
  func notAdded() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let timer = Timer(at: 5, every: .milliseconds(5)) { _ in log.write("T") }
      loop.keepAlive()
      loop.run(mode: .default, for: .milliseconds(50))
      log.write("\(timer.isValid)")
      return log.text
    }
    #expect(log == "true")
  }
}

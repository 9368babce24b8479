// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The date of a timer by the wall clock", .timeLimit(.minutes(20)))
struct TimerDateTests {
  /// Dates of every kind, in seconds since 2001.
  static let dates: [Double] = [
    0, 0.1, -0.1, 1 / 3, 631_152_000.123_456_7, 4_039_289_856, 4_039_289_857.5, 9_200_000_000, 1e15, -1e15,
    .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity,
    Date.distantFuture.timeIntervalSinceReferenceDate, Date.distantPast.timeIntervalSinceReferenceDate,
  ]

  @Test("a date reads back equal to what the timer was made with or was given", .rule(.r92, .m29), arguments: dates)
  func readsBack(seconds: Double) {
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    let timer = Timer(fire: date, interval: 1, repeats: true) { _ in }
    #expect(timer.fireDate == date)
    timer.fireDate = .virtual(5)
    #expect(timer.fireDate == .virtual(5))
    timer.fireDate = date
    #expect(timer.fireDate == date)
    onVirtualTime { _, loop in
      loop.add(timer, forMode: .common)
      timer.fireDate = .virtual(6)
      timer.fireDate = date
    }
    #expect(timer.fireDate == date)
  }

  @Test("a date that is not a number reads back exactly, and never arrives", .rule(.m12, .m29))
  func notANumber() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: -.nan)
      let timer = Timer(fire: date, interval: 1, repeats: true) { _ in log.write("T") }
      loop.add(timer, forMode: .default)
      log.write("\(timer.fireDate.timeIntervalSinceReferenceDate.bitPattern == (-Double.nan).bitPattern)")
      log.write("\(loop.run(mode: .default, for: .seconds(500_000_000)))")
      timer.fireDate = .distantPast
      timer.fireDate = date
      log.write("\(timer.fireDate.timeIntervalSinceReferenceDate.bitPattern == (-Double.nan).bitPattern)")
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "true timedOut true timedOut")
  }

  @Test(
    "dates beyond the clock's range never arrive", .rule(.r95, .m12),
    arguments: [63_113_904_000, 1e10, 1e300, .infinity])
  func tooFar(seconds: Double) {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      loop.add(Timer(fire: date, interval: 0, repeats: false) { _ in log.write("T") }, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .seconds(500_000_000)))")
      return log.text
    }
    #expect(log == "timedOut")
  }

  @Test("a date after 2129 arrives when it is due", .rule(.r95, .m29))
  func afterTwentyOneTwentyNine() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: 4_039_289_857)
      loop.add(
        Timer(fire: date, interval: 0, repeats: false) { _ in log.write("\(time.now.nanoseconds)") }, forMode: .default)
      log.write("\(loop.runUntilStopped())")
      return log.text
    }
    #expect(log == "4039289857000000000 finished")
  }

  @Test(
    "a timer with a past date is due at once, and its phase starts there", .rule(.r93, .r97),
    arguments: [-63_114_076_800, -0.05, -Double.infinity])
  func past(seconds: Double) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      time.advance(by: .milliseconds(3))
      let timer = Timer(fire: date, interval: 0.01, repeats: true) { timer in
        time.stamp(log, "T")
        log.write(timer.fireDate == date ? "set" : timer.fireDate.text)
      }
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(25))
      return log.text
    }
    #expect(log == "T3 set T13 13 T23 23")
  }

  @Test(
    "during the call-out the date is still the old one, and then the phase's next by the wall clock",
    .rule(.r97, .r98))
  func afterFiring() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(20), interval: 0.02, repeats: true) { timer in
        time.stamp(log, "T")
        log.write(timer.fireDate.text)
        if time.milliseconds == 40 { time.advance(by: .milliseconds(50)) }
      }
      loop.add(timer, forMode: .default)
      for _ in 0..<4 {
        loop.run(mode: .default, for: .milliseconds(20))
        log.write("| \(timer.fireDate.text)")
      }
      return log.text
    }
    #expect(log == "T20 20 | 40 T40 40 | 100 T100 100 | 120 T120 120 | 140")
  }

  @Test(
    "two reads of a date agree although the clock is set between them; the next date follows the set clock",
    .rule(.r92, .m29))
  func twoReads() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(timeInterval: 0.02, repeats: true) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      log.write(timer.fireDate.text)
      time.setWallClock(by: .milliseconds(500))
      log.write(timer.fireDate.text)
      loop.run(mode: .default, for: .milliseconds(20))
      log.write(timer.fireDate.text)
      time.setWallClock(by: .milliseconds(-1000))
      log.write(timer.fireDate.text)
      loop.run(mode: .default, for: .milliseconds(20))
      log.write(timer.fireDate.text)
      return log.text
    }
    #expect(log == "20 20 T20 540 540 T40 -440")
  }

  @Test("setting the wall clock moves no timer", .rule(.r92), arguments: [Duration.seconds(3600), .seconds(-3600)])
  func wallClock(change: Duration) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(20), interval: 0, repeats: false) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      time.at(.milliseconds(5)) { time.setWallClock(by: change) }
      log.write("\(loop.runUntilStopped()) \(timer.fireDate.text)")
      return log.text
    }
    #expect(log == "T20 finished 20")
  }

  @Test("a date set later refers to the wall clock as it is then", .rule(.r92))
  func afterWallClock() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      time.setWallClock(by: .milliseconds(100))
      timer.fireDate = .virtual(110)
      log.write("\(timer.deadline - loop.now)")
      log.write("\(loop.runUntilStopped())")
      return log.text
    }
    #expect(log == "0.01 seconds T10 finished")
  }

  @Test("deadline and date are views of one value, and each replaces the other", .rule(.r51, .r99))
  func deadline() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(20), interval: 0, repeats: false) { _ in time.stamp(log, "T") }
      let start = loop.now
      log.write("\(timer.deadline - start)")
      timer.deadline = start.advanced(by: .milliseconds(30))
      log.write(timer.fireDate.text)
      timer.fireDate = .virtual(40)
      log.write("\(timer.deadline - start)")
      timer.fireDate = .distantFuture
      timer.deadline = start.advanced(by: .milliseconds(7))
      log.write(timer.fireDate.text)
      loop.add(timer, forMode: .default)
      loop.runUntilStopped()
      return log.text
    }
    #expect(log == "0.02 seconds 30 0.04 seconds 7 T7")
  }

  @Test(
    "an infinite deadline reads as the distant future or the distant past",
    .rule(.m12))
  func endlessDeadline() {
    let text = onVirtualTime { _, loop in
      let timer = Timer(timeInterval: .infinity, repeats: true) { _ in }
      let first = timer.fireDate
      timer.deadline = loop.now.advanced(by: .seconds(-1e18))
      return "\(first.text) \(timer.fireDate.text)"
    }
    #expect(text == "future past")
  }

  @Test("a date that another thread sets takes effect on a sleeping loop", .rule(.r50, .r99))
  func whileAsleep() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .distantFuture, interval: 0.01, repeats: true) { timer in
        time.stamp(log, "T")
        if time.milliseconds == 38 { timer.invalidate() }
      }
      loop.add(timer, forMode: .common)
      time.at(.milliseconds(5)) { timer.fireDate = .virtual(8) }
      time.at(.milliseconds(20)) { timer.fireDate = .distantFuture }
      time.at(.milliseconds(35)) { timer.fireDate = .virtual(38) }
      log.write("\(loop.runUntilStopped())")
      return log.text
    }
    #expect(log == "T8 T18 T38 finished")
  }

  @Test("a timer pauses and continues by dates set in its call-out", .rule(.r99))
  func pause() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(5), interval: 0.01, repeats: true) { timer in
        time.stamp(log, "T")
        timer.fireDate = timer.fireDate == .virtual(5) ? .distantPast : .distantFuture
        log.write(timer.fireDate.text)
      }
      loop.add(timer, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(50)))")
      log.write("\(timer.isValid) \(timer.fireDate.text)")
      return log.text
    }
    #expect(log == "T5 past T5 future timedOut true future")
  }

  @Test("an invalid timer keeps its last date", .rule(.r99c, .m27))
  func invalid() {
    let timer = Timer(fire: .distantFuture, interval: 1, repeats: true) { _ in }
    timer.invalidate()
    timer.fireDate = .virtual(5)
    #expect(timer.fireDate == .distantFuture)
  }

  @Test("a one-shot timer keeps the date for which it fired, or the one set by its call-out", .rule(.r96))
  func oneShot() {
    let text = onVirtualTime { _, loop in
      let kept = Timer(fire: .virtual(5), interval: 0, repeats: false) { _ in }
      let moved = Timer(fire: .virtual(5), interval: 0, repeats: false) { $0.fireDate = .virtual(99) }
      loop.add(kept, forMode: .default)
      loop.add(moved, forMode: .default)
      loop.runUntilStopped()
      return "\(kept.fireDate.text) \(kept.isValid) \(moved.fireDate.text) \(moved.isValid)"
    }
    #expect(text == "5 false 99 false")
  }

  @Test("on the system's clocks a timer never fires early, and two reads are equal", .rule(.r92))
  func systemClock() {
    let log = onNewThread {
      let log = Log()
      let timer = Timer(fire: Date(timeIntervalSinceNow: 0.002), interval: 0.001, repeats: true) { timer in
        // The call-out checks the date that was just reached, on a clock that is not set meanwhile.
        log.write(Date() >= timer.fireDate ? "T" : "early")
        if log.count(of: "T") == 5 { timer.invalidate() }
      }
      RunLoop.current.add(timer, forMode: .default)
      log.write("\(timer.fireDate == timer.fireDate)")
      RunLoop.current.run(until: .distantFuture)
      log.write("\(timer.fireDate == timer.fireDate)")
      return log.text
    }
    #expect(log == "true T T T T T true")
  }
}

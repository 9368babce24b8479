// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The interval of a timer, in Foundation's spelling", .timeLimit(.minutes(20)))
struct TimerIntervalTests {
  // L2: In Foundation on Linux, such a timer fires immediately.
  @Test("a timer by interval fires first after its interval", .rule(.m18), arguments: [false, true])
  func firstFire(repeats: Bool) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(timeInterval: 0.02, repeats: repeats) { _ in time.stamp(log, "T") }
      log.write(timer.fireDate.text)
      time.advance(by: .milliseconds(5))
      loop.add(timer, forMode: .default)
      loop.run(until: .virtual(45))
      return log.text
    }
    #expect(log == (repeats ? "20 T20 T40" : "20 T20"))
  }

  // L2: In Foundation on Linux, such a timer fires immediately.
  @Test("a scheduled timer first fires after its interval, on the loop of its creator's thread", .rule(.m18))
  func scheduled() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: false) { _ in time.stamp(log, "T") }
      log.write("\(loop.contains(timer, forMode: .default)) \(timer.fireDate.text)")
      loop.run(until: .virtual(45))
      return log.text
    }
    #expect(log == "true 20 T20")
  }

  // L3: In Foundation on Linux, such a timer fires once.
  @Test(
    "a repeating timer's interval that is not positive becomes 0.0001 seconds", .rule(.m12, .m18),
    arguments: [0, -0.0, -3, -Double.infinity])
  func notPositive(interval: Double) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let made = [
        Timer(fire: .virtual(1), interval: interval, repeats: true) { _ in log.write("A\(time.now.nanoseconds)") },
        Timer(fire: .virtual(1), interval: interval, userInfo: 1, repeats: true) { _ in log.write("B") },
        Timer(timeInterval: interval, userInfo: 1, repeats: true) { _ in log.write("C") },
        Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { _ in log.write("D") },
      ]
      log.write("\(made.map(\.timeInterval))")
      for timer in made.dropFirst() { timer.invalidate() }
      loop.add(made[0], forMode: .default)
      loop.run(mode: .default, for: .microseconds(1250))
      log.write("\(made[0].isValid)")
      return log.text
    }
    #expect(log == "[0.0001, 0.0001, 0.0001, 0.0001] A1000000 A1100000 A1200000 true")
  }

  @Test(
    "the interval of a one-shot timer is ignored", .rule(.m12), arguments: [0, 5, -1, Double.infinity, .nan])
  func once(interval: Double) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(7), interval: interval, repeats: false) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      log.write("\(timer.timeInterval)")
      loop.run(until: .distantFuture)
      return log.text
    }
    #expect(log == "0.0 T7")
  }

  @Test(
    "a timer's interval reads back unchanged", .rule(.m12),
    arguments: [1.0 / 3, 1.0 / 60, 0.1, 1e-6, 1e12, .infinity])
  func readsBack(interval: Double) {
    let timers = [
      Timer(timeInterval: interval, repeats: true) { _ in },
      Timer(fire: .distantFuture, interval: interval, repeats: true) { _ in },
    ]
    #expect(timers.map(\.timeInterval) == [interval, interval])
  }

  @Test(
    "an interval below a microsecond becomes one, and reads back so", .rule(.m12), arguments: [1e-300, 1e-9, 9.9e-7])
  func tiny(interval: Double) {
    #expect(Timer(timeInterval: interval, repeats: true) { _ in }.timeInterval == 1e-6)
    #expect(Timer(fire: .distantPast, interval: interval, repeats: true) { _ in }.timeInterval == 1e-6)
  }

  @Test("a NaN interval of a repeating timer is a programming error", .rule(.m12))
  func notANumber() async {
    await #expect(processExitsWith: .failure) {
      _ = Timer(fire: Date(), interval: .nan, repeats: true) { _ in }
    }
  }

  @Test("a timer created with a date keeps that date's phase", .rule(.r97))
  func phase() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(5), interval: 0.02, repeats: true) { _ in
        time.stamp(log, "T")
        if time.milliseconds == 25 { time.advance(by: .milliseconds(70)) }
      }
      loop.add(timer, forMode: .default)
      loop.run(until: .virtual(130))
      return log.text
    }
    #expect(log == "T5 T25 T105 T125")
  }

  @Test("fire calls the block at once; a repeating timer keeps its schedule, and a one-shot one ends", .rule(.r99c))
  func fire() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let repeating = Timer(fire: .virtual(10), interval: 0.01, repeats: true) { _ in time.stamp(log, "R") }
      let once = Timer(fire: .virtual(10), interval: 0, repeats: false) { _ in time.stamp(log, "O") }
      repeating.fire()
      loop.add(repeating, forMode: .default)
      loop.add(once, forMode: .default)
      time.advance(by: .milliseconds(3))
      repeating.fire()
      once.fire()
      log.write("\(repeating.isValid) \(repeating.fireDate.text) \(once.isValid)")
      once.fire()
      loop.run(until: .virtual(25))
      repeating.invalidate()
      repeating.fire()
      return log.text
    }
    #expect(log == "R0 R3 O3 true 10 false R10 R20")
  }
}

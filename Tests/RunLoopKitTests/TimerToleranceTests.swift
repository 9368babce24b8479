// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("The tolerance of a timer, in Foundation's spelling", .timeLimit(.minutes(20)))
struct TimerToleranceTests {
  // L5: In Foundation on Linux, the tolerance is always zero.
  @Test("a timer's tolerance reads back", .rule(.m8))
  func readsBack() {
    let timer = Timer(fire: .distantFuture, interval: 1, repeats: true) { _ in }
    #expect(timer.tolerance == 0)
    timer.tolerance = 0.25
    #expect(timer.tolerance == 0.25)
    timer.tolerance = 3
    #expect(timer.tolerance == 0.5)
    timer.tolerance = -1
    #expect(timer.tolerance == 0)
  }

  // L5: In Foundation on Linux, each of these timers has its own wake-up.
  @Test(
    "timers with overlapping tolerances share a wake-up, and none fires early or too late", .rule(.m8))
  func shared() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let dates = [10, 12, 14, 40]
      for date in dates {
        let timer = Timer(fire: .virtual(date), interval: 0, repeats: false) { _ in time.stamp(log, "\(date)@") }
        timer.tolerance = 0.005
        loop.add(timer, forMode: .default)
      }
      loop.run(until: .distantFuture)
      log.write("\(time.sleepCount) \(loop.statistics.savedWakeUpCount)")
      return log.text
    }
    #expect(log == "10@15 12@15 14@15 40@45 2 2")
  }

  // L5: In Foundation on Linux, each of these timers has its own wake-up.
  @Test("a late fire changes neither the date nor the phase", .rule(.m8))
  func phase() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(fire: .virtual(10), interval: 0.02, repeats: true) { timer in
        time.stamp(log, "\(timer.fireDate.text)@")
      }
      timer.tolerance = 0.004
      loop.add(timer, forMode: .default)
      loop.run(until: .virtual(60))
      return log.text
    }
    #expect(log == "10@14 30@34 50@54")
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A stop of a mode", .timeLimit(.minutes(20)))
struct ModeStopTests {
  @Test("a stop of a mode before the run ends it before its first pass, once", .rule(.r42, .m16))
  func beforeRun() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.stop(mode: .default)
      loop.run(log)
      loop.run(log)
    }
    #expect(log == "E X stopped E BT BS BW AW X timedOut")
  }

  @Test("a stop of the mode at the entry ends the run before its first pass", .rule(.r42))
  func atEntry() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.once(.entry) { loop.stop(mode: .default) }
      loop.run(log)
    }
    #expect(log == "E X stopped")
  }

  @Test("a stop of the mode ends the sleep and the run", .rule(.r42))
  func asleep() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stop(mode: .default) }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X stopped 5")
  }

  @Test("a stop of the mode before the wait lets the pass end without a sleep", .rule(.r42))
  func beforeWaiting() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.beforeWaiting) { loop.stop(mode: .default) }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X stopped 0")
  }

  @Test("a stop of a mode waits for a run that consumes it", .rule(.r42))
  func kept() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.keepAlive("a")
      loop.once(.beforeTimers) { loop.stop(mode: .default) }
      loop.run(log, for: .zero)
      loop.run(log, mode: "a")
      loop.run(log)
      loop.run(log)
    }
    #expect(log == "timedOut timedOut stopped timedOut")
  }

  @Test("a stop of another mode costs no pass", .rule(.r42, .m20))
  func otherMode() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stop(mode: "other") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }

  @Test("a stop of the outer mode passes the nested run by", .rule(.r42))
  func outerMode() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) { loop.stop(mode: .default) }
      loop.signalled { loop.nest(log, mode: "inner", for: .milliseconds(10)) }
      loop.run(log)
    }
    #expect(log == "E BT BS [ timedOut ] X stopped")
  }

  @Test("a stop of a mode that runs twice ends the inner run", .rule(.r42))
  func sameModeTwice() {
    let log = record(observing: nil) { time, loop, log in
      time.at(.milliseconds(5)) { loop.stop(mode: .default) }
      loop.signalled { loop.nest(log, for: .seconds(1)) }
      loop.run(log, for: .seconds(2))
    }
    #expect(log == "[ stopped ] timedOut")
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A stop", .timeLimit(.minutes(20)))
struct StopTests {
  @Test("a stop before the run is forgotten", .rule(.r34, .m16))
  func beforeRun() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.stop()
      loop.run(log)
      loop.stop()
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut E BT BS BW AW X timedOut")
  }

  @Test("a stop ends the sleep and the run", .rule(.r35))
  func asleep() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stop() }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X stopped 5")
  }

  @Test("a stop at the entry ends the run before its first pass, and costs the next run no pass", .rule(.r37, .m20))
  func atEntry() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.entry) { loop.stop() }
      loop.run(log)
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E X stopped E BT BS BW AW X timedOut 1")
  }

  @Test("a stop at the exit is discarded", .rule(.r38, .m20))
  func atExit() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.exit) { loop.stop() }
      loop.run(log, for: .zero)
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS X timedOut E BT BS BW AW X timedOut 1")
  }

  @Test(
    "a stop by an observer before the wait lets the pass end without a sleep", .rule(.r39),
    arguments: [RunLoop.Activity.beforeTimers, .beforeSources, .beforeWaiting])
  func byObserver(activity: RunLoop.Activity) {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(activity) { loop.stop() }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X stopped 0")
  }

  @Test("a stop by a block lets the pass end without a sleep", .rule(.r39))
  func byBlock() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.perform {
        log.write("B")
        loop.stop()
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS B BW AW X stopped 0")
  }

  @Test("a stop by a source ends its pass, which does not wait", .rule(.r39))
  func bySource() {
    let log = record { _, loop, log in
      loop.signalled {
        log.write("S0")
        loop.stop()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS S0 X stopped")
  }

  @Test("the rest of the pass in which a stop occurs is completed", .rule(.r39))
  func restOfPass() {
    let log = record { _, loop, log in
      loop.once(.beforeTimers) { loop.stop() }
      loop.perform { log.write("B") }
      loop.signalled { log.write("S0") }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS B S0 T X stopped")
  }

  @Test("a stop after the wait ends the run with the pass", .rule(.r39))
  func afterWait() {
    let log = record { _, loop, log in
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      loop.keepAlive()
      loop.once(.afterWaiting) { loop.stop() }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T X stopped")
  }

  @Test("a stop from another thread during a call-out ends the run with the pass", .rule(.r40))
  func fromAnotherThread() {
    let log = record { _, loop, log in
      loop.signalled { onNewThread { loop.stop() } }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS T X stopped")
  }

  @Test("a stop from another thread ends an endless run", .rule(.r35, .r40))
  func endlessRun() {
    let log = record { _, loop, log in
      let thread = Box<StartedThread<Void>?>(nil)
      loop.keepAlive()
      loop.once(.beforeWaiting) { thread.value = startThread { loop.stop() } }
      log.write("\(loop.runUntilStopped())")
      thread.value?.result()
    }
    #expect(log == "E BT BS BW AW X stopped")
  }

  @Test("a stop ends one run", .rule(.r41))
  func once() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { for _ in 0..<3 { loop.stop() } }
      loop.run(log)
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X stopped E BT BS BW AW X timedOut")
  }

  @Test("a stop ends one turn of the indefinite run, and the next begins", .rule(.r43, .m24))
  func runWithoutEnd() {
    let log = record { time, loop, log in
      let source = loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stop() }
      time.at(.milliseconds(10)) {
        source.invalidate()
        loop.wakeUp()
      }
      loop.run()
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X E BT BS BW AW X 10")
  }

  @Test("the loop of a stopping thread ends its run and makes no further pass", .rule(.m16, .m24))
  func stoppingThread() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stopForGood() }
      loop.run(log)
      loop.run(log)
      log.write("\(loop.runUntilStopped())")
      loop.run()
    }
    #expect(log == "E BT BS BW AW X stopped stopped stopped")
  }

  @Test("the loop of a stopping thread ends the indefinite run", .rule(.m16, .m24))
  func stoppingThreadEndsRunWithoutEnd() {
    let log = record { time, loop, _ in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stopForGood() }
      loop.run()
    }
    #expect(log == "E BT BS BW AW X")
  }

  @Test("the loop of a stopping thread ends every run, from the innermost on", .rule(.m16, .m24))
  func stoppingThreadEndsNestedRuns() {
    let log = record(observing: nil) { time, loop, log in
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) { loop.stopForGood() }
      loop.signalled { loop.nest(log, mode: "inner", for: .seconds(1)) }
      loop.run(log)
    }
    #expect(log == "[ stopped ] stopped")
  }

  @Test("the stop of a thread is kept for runs that are yet to begin, also of an empty mode", .rule(.m16, .m24))
  func stoppingThreadBeforeRun() {
    let log = record { _, loop, log in
      loop.stopForGood()
      loop.run(log)
      loop.keepAlive()
      loop.run(log)
    }
    #expect(log == "stopped stopped")
  }
}

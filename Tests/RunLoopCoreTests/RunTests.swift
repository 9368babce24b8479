// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A run", .timeLimit(.minutes(20)))
struct RunTests {
  @Test("a run has its mode from the entry observers to the exit observers", .rule(.r1, .r31))
  func shape() {
    let log = record(observing: nil) { _, loop, log in
      let mode = { @Sendable in loop.currentMode?.rawValue ?? "none" }
      loop.keepAlive("a")
      loop.add(
        RunLoop.Observer(activities: .all) { _, activity in log.write("\(activity.letter):\(mode())") }, forMode: "a")
      log.write(mode())
      loop.run(log, mode: "a")
      log.write(mode())
    }
    #expect(log == "none E:a BT:a BS:a BW:a AW:a X:a timedOut none")
  }

  @Test("the blocks of what was served run before the run decides to return", .rule(.r2, .r6, .r29))
  func blocksBeforeReturn() {
    let log = record { _, loop, log in
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        loop.perform { log.write("B") }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T B X finished")
  }

  @Test("blocks run a second time at the top of a pass only after a source has performed", .rule(.r2))
  func secondBlocks() {
    let log = record { _, loop, log in
      loop.signalled {
        log.write("S0")
        loop.perform { log.write("B2") }
      }
      loop.perform { log.write("B1") }
      loop.run(log)
    }
    #expect(log == "E BT BS B1 S0 B2 BT BS BW AW X timedOut")
  }

  @Test("a pass that handled a source does not wait, and still fires timers", .rule(.r3))
  func pollFiresTimers() {
    let log = record { _, loop, log in
      loop.signalled { log.write("S0") }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS S0 T BT BS BW AW X timedOut")
  }

  @Test("a pass that handled a source does not wait, and still receives from a port", .rule(.r3))
  func pollReceives() {
    let log = record { _, loop, log in
      loop.signalled { log.write("S0") }
      loop.port(messages: 1) { log.write("S1") }
      loop.run(log)
    }
    #expect(log == "E BT BS S0 S1 BT BS BW AW X timedOut")
  }

  @Test("a timer that is due when the run begins fires after the wait", .rule(.r5))
  func dueAtEntry() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T BT BS BW AW X timedOut")
  }

  @Test("all signalled sources perform in one pass", .rule(.r9))
  func allSources() {
    let log = record { _, loop, log in
      loop.signalled { log.write("a") }
      loop.signalled { log.write("b") }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS a b X timedOut")
  }

  @Test("a run that returns after a source performs one and leaves the others signalled", .rule(.r8, .r9))
  func oneSourcePerRun() {
    let log = record { _, loop, log in
      loop.signalled { log.write("a") }
      loop.signalled { log.write("b") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS a X handledSource E BT BS b X handledSource")
  }

  @Test("the messages that a port has cost one pass with its stages, without a sleep", .rule(.r10))
  func messagesInOnePass() {
    let log = record { time, loop, log in
      loop.port(messages: 2) { log.write("S1") }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW S1 S1 BT BS BW AW X timedOut 1")
  }

  @Test("ports that are ready together take turns, each with the messages that it has", .rule(.r10, .r11, .m19))
  func portsTakeTurns() {
    let log = record(observing: nil) { _, loop, log in
      loop.port(messages: 2) { log.write("a") }
      loop.port(messages: 2) { log.write("b") }
      loop.run(log)
    }
    #expect(log == "a a b b timedOut")
  }

  @Test("timers that are always due and a port that is always ready take turns", .rule(.r2, .r11, .m19))
  func classesTakeTurns() {
    let log = record(observing: nil) { time, loop, log in
      loop.add(
        RunLoop.Observer(activities: .beforeTimers) { _, _ in time.advance(by: .milliseconds(1)) }, forMode: .default)
      loop.every(.milliseconds(1)) { _ in log.write("T") }
      loop.endlessPort {
        log.write("S1")
        if log.count(of: "S1") == 3 { loop.stop() }
      }
      loop.run(log)
    }
    #expect(log == "T S1 T S1 T S1 stopped")
  }

  @Test("a run until stopped ends with a stop, however late", .rule(.r15))
  func untilStopped() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.seconds(2_000_000_000)) { loop.stop() }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "E BT BS BW AW X stopped")
  }

  @Test("a run until stopped ends with the last timer", .rule(.r15, .r29))
  func untilFinished() {
    let log = record { _, loop, log in
      loop.after(.seconds(1)) { _ in log.write("T") }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "E BT BS BW AW T X finished")
  }

  @Test("a run until stopped with nothing but a block waits for its stop", .rule(.r15, .r28a, .m1))
  func untilFinishedWithBlock() {
    let log = record { time, loop, log in
      loop.perform { log.write("B") }
      time.at(.milliseconds(5)) { loop.stop() }
      log.write("\(loop.runUntilStopped()) \(time.milliseconds)")
    }
    #expect(log == "E BT BS B BW AW X stopped 5")
  }

  @Test(
    "a run in the common pseudo-mode is finished at once", .rule(.r16, .r100, .m11),
    arguments: [RunLoop.Mode.common, "kCFRunLoopCommonModes"])
  func commonMode(mode: RunLoop.Mode) {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.perform { log.write("B") }
      loop.run(log, mode: mode)
    }
    #expect(log == "finished")
  }

  @Test("call-outs see their loop as the current one", .rule(.r18))
  func current() {
    let isCurrent = onVirtualTime { _, loop in
      let found = Box<RunLoop?>(nil)
      loop.perform { found.value = RunLoop.current }
      loop.run(mode: .default, for: .zero)
      return found.value == loop
    }
    #expect(isCurrent)
  }
}

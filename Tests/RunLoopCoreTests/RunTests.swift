// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A run", .timeLimit(.minutes(20)))
struct RunTests {
  // R1, R31
  @Test("a run has its mode from the entry observers to the exit observers")
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

  // R2, R6, R29
  @Test("the blocks of what was served run before the run decides to return")
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

  // R2
  @Test("blocks run a second time at the top of a pass only after a source has performed")
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

  // R3
  @Test("a pass that handled a source does not wait, and still fires timers")
  func pollFiresTimers() {
    let log = record { _, loop, log in
      loop.signalled { log.write("S0") }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS S0 T BT BS BW AW X timedOut")
  }

  // R3
  @Test("a pass that handled a source does not wait, and still receives from a port")
  func pollReceives() {
    let log = record { _, loop, log in
      loop.signalled { log.write("S0") }
      loop.port(messages: 1) { log.write("S1") }
      loop.run(log)
    }
    #expect(log == "E BT BS S0 S1 BT BS BW AW X timedOut")
  }

  // R5
  @Test("a timer that is due when the run begins fires after the wait")
  func dueAtEntry() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T BT BS BW AW X timedOut")
  }

  // R9
  @Test("all signalled sources perform in one pass")
  func allSources() {
    let log = record { _, loop, log in
      loop.signalled { log.write("a") }
      loop.signalled { log.write("b") }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS a b X timedOut")
  }

  // R8, R9
  @Test("a run that returns after a source performs one and leaves the others signalled")
  func oneSourcePerRun() {
    let log = record { _, loop, log in
      loop.signalled { log.write("a") }
      loop.signalled { log.write("b") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS a X handledSource E BT BS b X handledSource")
  }

  // R10
  @Test("the messages that a port has cost one pass with its stages, without a sleep")
  func messagesInOnePass() {
    let log = record { time, loop, log in
      loop.port(messages: 2) { log.write("S1") }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW S1 S1 BT BS BW AW X timedOut 1")
  }

  // R10, R11, M19
  @Test("ports that are ready together take turns, each with the messages that it has")
  func portsTakeTurns() {
    let log = record(observing: nil) { _, loop, log in
      loop.port(messages: 2) { log.write("a") }
      loop.port(messages: 2) { log.write("b") }
      loop.run(log)
    }
    #expect(log == "a a b b timedOut")
  }

  // R2, R11, M19
  @Test("timers that are always due and a port that is always ready take turns")
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

  // R15
  @Test("a run until stopped ends with a stop, however late")
  func untilStopped() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.seconds(2_000_000_000)) { loop.stop() }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "E BT BS BW AW X stopped")
  }

  // R15, R29
  @Test("a run until stopped ends with the last timer")
  func untilFinished() {
    let log = record { _, loop, log in
      loop.after(.seconds(1)) { _ in log.write("T") }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "E BT BS BW AW T X finished")
  }

  // R15, R28a, M1
  @Test("a run until stopped with nothing but a block waits for its stop")
  func untilFinishedWithBlock() {
    let log = record { time, loop, log in
      loop.perform { log.write("B") }
      time.at(.milliseconds(5)) { loop.stop() }
      log.write("\(loop.runUntilStopped()) \(time.milliseconds)")
    }
    #expect(log == "E BT BS B BW AW X stopped 5")
  }

  // R16, R100, M11
  @Test(
    "a run in the common pseudo-mode is finished at once",
    arguments: [RunLoop.Mode.common, "kCFRunLoopCommonModes"])
  func commonMode(mode: RunLoop.Mode) {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.perform { log.write("B") }
      loop.run(log, mode: mode)
    }
    #expect(log == "finished")
  }

  // R18
  @Test("call-outs find their loop to be the current one")
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

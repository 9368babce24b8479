// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A wake-up", .timeLimit(.minutes(20)))
struct WakeUpTests {
  @Test("a wake-up of a sleeping loop is one more pass, and no reason to return", .rule(.r45))
  func asleep() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.wakeUp() }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW BT BS BW AW X timedOut 1000")
  }

  @Test("many wake-ups count as one", .rule(.r44))
  func coalesced() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { for _ in 0..<100 { loop.wakeUp() } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW BT BS BW AW X timedOut")
  }

  @Test("a wake-up outside every run is dropped", .rule(.r46, .m20))
  func outside() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.wakeUp()
      loop.run(log)
      loop.wakeUp()
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X timedOut E BT BS BW AW X timedOut 2")
  }

  @Test("work that came before the run needs no wake-up", .rule(.r46))
  func workBeforeRun() {
    let log = record { _, loop, log in
      onNewThread {
        loop.signalled { log.write("S0") }
        loop.perform { log.write("B") }
      }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS B S0 X timedOut")
  }

  @Test("a wake-up after the wait is handled by the next pass, which is made in any case", .rule(.r47))
  func afterWait() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.afterWaiting) { loop.wakeUp() }
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        loop.wakeUp()
        loop.perform {
          log.write("B")
          loop.wakeUp()
        }
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW T B BT BS BW AW X timedOut 2")
  }

  @Test("a wake-up by a port is handled by the next pass, which is made in any case", .rule(.r47))
  func byPort() {
    let log = record { time, loop, log in
      loop.port(messages: 1) {
        log.write("S1")
        loop.wakeUp()
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW S1 BT BS BW AW X timedOut 1")
  }

  @Test("a wake-up in the last pass or at the exit does not reach the next run", .rule(.r47, .m20))
  func lastPass() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.after(.seconds(1)) { _ in loop.wakeUp() }
      loop.once(.exit) { loop.wakeUp() }
      loop.run(log)
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X timedOut E BT BS BW AW X timedOut 2")
  }

  @Test(
    "a wake-up by an observer before the wait keeps the loop from sleeping once", .rule(.r48),
    arguments: [RunLoop.Activity.entry, .beforeTimers, .beforeSources, .beforeWaiting])
  func byObserver(activity: RunLoop.Activity) {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(activity) { loop.wakeUp() }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW BT BS BW AW X timedOut 1")
  }

  @Test("a wake-up by a block before the wait keeps the loop from sleeping once", .rule(.r48))
  func byBlock() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.perform { loop.wakeUp() }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW BT BS BW AW X timedOut 1")
  }

  @Test("a wake-up by a source is handled by the source's pass, which does not wait", .rule(.r48))
  func bySource() {
    let log = record { time, loop, log in
      loop.signalled {
        log.write("S0")
        loop.wakeUp()
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS S0 BT BS BW AW X timedOut 1")
  }

  @Test("a wake-up before a run nested in an observer before the wait is kept for the outer loop", .rule(.r49, .m2))
  func keptForOuter() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.keepAlive("inner")
      loop.once(.beforeWaiting) {
        loop.wakeUp()
        loop.nest(log, mode: "inner", for: .milliseconds(5))
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW [ timedOut ] AW BT BS BW AW X timedOut 2")
  }

  @Test(
    "a source signalled while a run nested before the wait takes its wake-up is performed at once",
    .rule(.r49, .m1, .m2))
  func workForOuter() {
    let log = record { time, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      loop.add(source, forMode: .default)
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) {
        source.signal()
        loop.wakeUp()
      }
      loop.once(.beforeWaiting) { loop.nest(log, mode: "inner", for: .milliseconds(10)) }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    // The nested run slept twice, before and after the wake-up, and the outer run once, until its end.
    #expect(log == "E BT BS BW [ timedOut ] AW BT BS S0 BT BS BW AW X timedOut 3")
  }

  @Test(
    "a block that is posted for the outer mode during a run nested before the wait runs at once", .rule(.r49, .m1, .m2))
  func blockForOuter() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) { loop.perform { log.write("B") } }
      loop.once(.beforeWaiting) { loop.nest(log, mode: "inner", for: .milliseconds(10)) }
      loop.run(log)
    }
    #expect(log == "E BT BS BW [ timedOut ] AW B BT BS BW AW X timedOut")
  }

  @Test("a wake-up that a nested run leaves unanswered reaches the outer loop", .rule(.r49, .m2, .m26))
  func unanswered() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.keepAlive("inner")
      loop.once(.exit, mode: "inner") { loop.wakeUp() }
      loop.once(.beforeWaiting) { loop.nest(log, mode: "inner") }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW [ timedOut ] AW BT BS BW AW X timedOut 1")
  }

  @Test("a timer that is added while the loop sleeps fires in time, without a pass before", .rule(.r50))
  func timerAdded() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) {
        loop.after(.milliseconds(5)) { _ in
          log.write("T")
          log.write("\(time.milliseconds)")
        }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T 10 BT BS BW AW X timedOut")
  }

  @Test("a timer that is added to the common modes while the loop sleeps fires in time", .rule(.r50, .r101))
  func commonTimerAdded() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.after(.milliseconds(5), mode: .common) { _ in log.write("T") } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T BT BS BW AW X timedOut")
  }

  @Test("a timer whose date is moved forward while the loop sleeps fires in time, without a pass before", .rule(.r50))
  func timerMoved() {
    let log = record { time, loop, log in
      let timer = loop.after(.seconds(9)) { _ in log.write("T \(time.milliseconds)") }
      time.at(.milliseconds(5)) { timer.deadline = loop.waiter.now.instant.advanced(by: .milliseconds(2)) }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T 7 X finished")
  }

  @Test("a port in which a message waits is received from when it is added while the loop sleeps", .rule(.r50))
  func portAdded() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.port(messages: 1) { log.write("S1 \(time.milliseconds)") } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW S1 5 BT BS BW AW X timedOut")
  }

  @Test("a source that is signalled while the loop sleeps needs a wake-up", .rule(.r50, .r70))
  func signalAlone() {
    let log = record { time, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      loop.add(source, forMode: .default)
      time.at(.milliseconds(5)) { source.signal() }
      loop.run(log)
      log.write("\(source.isSignalled)")
    }
    #expect(log == "E BT BS BW AW X timedOut true")
  }

  @Test("a source that is signalled while the loop sleeps performs with the wake-up", .rule(.r45, .r70))
  func signalAndWakeUp() {
    let log = record { time, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      loop.add(source, forMode: .default)
      time.at(.milliseconds(5)) {
        source.signal()
        loop.wakeUp()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW BT BS S0 BT BS BW AW X timedOut")
  }

  @Test("a source that is signalled when the loop is about to wait is performed without a sleep", .rule(.r48, .m1))
  func signalBeforeWaiting() {
    let log = record { time, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      loop.add(source, forMode: .default)
      loop.once(.beforeWaiting) { source.signal() }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW BT BS S0 BT BS BW AW X timedOut 1")
  }

  @Test("a signal that the mode cannot perform does not keep the loop from sleeping", .rule(.r70, .m1, .m20))
  func signalOfNothing() {
    let log = record { time, loop, log in
      loop.keepAlive()
      let removed = RunLoop.Source { log.write("S0") }
      let invalid = RunLoop.Source { log.write("S0") }
      for source in [removed, invalid] { loop.add(source, forMode: .default) }
      loop.once(.beforeWaiting) {
        removed.signal()
        loop.remove(removed, forMode: .default)
        invalid.signal()
        invalid.invalidate()
        loop.signalled(mode: "other") { log.write("S0") }
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X timedOut 1")
  }

  @Test("a block that is posted while the loop sleeps runs at once", .rule(.r50, .r54, .m3))
  func blockPosted() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.perform { log.write("B \(time.milliseconds)") } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW B 5 BT BS BW AW X timedOut")
  }

  @Test("a block that another thread posts ends an endless sleep", .rule(.r54, .m3))
  func blockFromAnotherThread() {
    let log = record { _, loop, log in
      let thread = Box<StartedThread<Void>?>(nil)
      loop.keepAlive()
      loop.once(.beforeWaiting) {
        thread.value = startThread {
          loop.perform {
            log.write("B")
            loop.stop()
          }
        }
      }
      log.write("\(loop.runUntilStopped())")
      thread.value?.result()
    }
    #expect(log == "E BT BS BW AW B X stopped")
  }

  @Test("a block that is posted for another mode costs no pass", .rule(.r54, .m3, .m20))
  func blockForOtherMode() {
    let log = record { time, loop, log in
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.perform(inModes: ["other"]) { log.write("B") } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }

  @Test("no wake-up from another thread is lost: each signal is performed", .rule(.r45, .m2))
  func handshake() {
    let log = record(observing: nil) { _, loop, log in
      let performed = Box<Int?>(nil)
      let source = RunLoop.Source {
        let count = (performed.value ?? 0) + 1
        performed.value = count
        if count == 100 { loop.stop() }
      }
      loop.add(source, forMode: .default)
      let thread = Box<StartedThread<Void>?>(nil)
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting) { _, _ in
          thread.value?.result()
          thread.value = startThread {
            source.signal()
            loop.wakeUp()
          }
        }, forMode: .default)
      log.write("\(loop.runUntilStopped()) \(performed.value ?? 0)")
      thread.value?.result()
    }
    #expect(log == "stopped 100")
  }

  @Test("a run whose last item another thread removes ends when that thread wakes the loop, at any time")
  func emptiedFromOutside() {
    let results: Set<RunLoop.RunResult> = onNewThread {
      let loop = RunLoop.current
      let rounds = 20_000
      let round = Atomic<Int>(0)
      let source = RunLoop.Source {}
      let remover = startThread {
        for number in 1...rounds {
          while round.load(ordering: .acquiring) < number { crl_yield() }
          // Somewhere in the beginning of the run or in one of its passes.
          for _ in 0..<number % 64 { crl_spin_hint() }
          loop.remove(source, forMode: .default)
          loop.wakeUp()
        }
      }
      var results: Set<RunLoop.RunResult> = []
      for number in 1...rounds where !results.contains(.timedOut) {
        loop.add(source, forMode: .default)
        round.store(number, ordering: .releasing)
        for _ in 0..<number % 3 { loop.wakeUp() }
        results.insert(loop.run(mode: .default, for: .seconds(60)))
      }
      // After a failure, the other thread still has rounds left.
      round.store(rounds, ordering: .releasing)
      remover.result()
      return results
    }
    #expect(results == [RunLoop.RunResult.finished])
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Foundation's runs", .timeLimit(.minutes(20)))
struct FoundationRunTests {
  @Test("a run before a date is false if nothing is there to run, and nothing is called or made", .rule(.r121))
  func empty() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(RunLoop.Observer(activities: .all) { _, _ in log.write("called") }, forMode: .default)
      for date in [Date.distantPast, .virtual(0), .virtual(5), .distantFuture] {
        log.write("\(loop.run(mode: .default, before: date)) \(loop.run(mode: "unknown", before: date))")
      }
      log.write("\(time.milliseconds) \(loop.modes.count)")
      return log.text
    }
    #expect(log == "false false false false false false false false 0 1")
  }

  @Test("a run before a date is true at the date, after a source, after a stop, and after its last timer", .rule(.r121))
  func trueWhateverEndsIt() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      func run(_ name: String) {
        log.write("\(name)\(loop.run(mode: .default, before: .virtual(100)))")
        time.stamp(log, "@")
      }
      loop.after(.milliseconds(5)) { _ in }
      run("last timer ")
      let idle = loop.keepAlive()
      time.at(.milliseconds(10)) { loop.signalled(wakes: true) { log.write("S") } }
      run("source ")
      time.at(.milliseconds(20)) { loop.stop() }
      run("stop ")
      time.at(.milliseconds(30)) { loop.stop(mode: .default) }
      run("mode's stop ")
      run("date ")
      idle.invalidate()
      return log.text
    }
    #expect(log == "last timer true @5 S source true @10 stop true @20 mode's stop true @30 date true @100")
  }

  @Test("timers, blocks and wake-ups do not end a run before a date", .rule(.r121))
  func goesOn() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      loop.after(.milliseconds(5)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(10)) { loop.perform { time.stamp(log, "B") } }
      time.at(.milliseconds(15)) { loop.wakeUp() }
      log.write("\(loop.run(mode: .default, before: .virtual(20)))")
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "T5 B10 true @20")
  }

  @Test(
    "a run before a past date makes one pass without a wait", .rule(.r12, .r121),
    arguments: [-63_114_076_800, 0, 0.007, -Double.infinity])
  func past(seconds: Double) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      time.advance(by: .milliseconds(7))
      loop.add(
        RunLoop.Observer(activities: [.beforeTimers, .beforeWaiting]) { _, activity in
          log.write(activity == .beforeTimers ? "BT" : "BW")
        }, forMode: .default)
      loop.after(.milliseconds(0)) { _ in time.stamp(log, "T") }
      loop.after(.milliseconds(9)) { _ in log.write("too early") }
      log.write("\(loop.run(mode: .default, before: date))")
      loop.run(until: date)
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "BT T7 true BT @7")
  }

  @Test(
    "a date that is never reached means no timeout", .rule(.r13, .r121, .r122),
    arguments: [63_113_904_000, Double.infinity, .nan])
  func endless(seconds: Double) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      let idle = loop.keepAlive()
      time.at(.seconds(600_000_000)) { loop.stop() }
      log.write("\(loop.run(mode: .default, before: date)) \(time.milliseconds)")
      time.at(.seconds(1_300_000_000)) {
        idle.invalidate()
        loop.wakeUp()
      }
      loop.run(until: date)
      log.write("\(time.milliseconds)")
      return log.text
    }
    #expect(log == "true 600000000000 1300000000000")
  }

  @Test("a run until a date returns at once if there is nothing to run", .rule(.r122))
  func untilEmpty() {
    let ended = onVirtualTime { time, loop in
      loop.run(until: .distantFuture)
      loop.keepAlive("another mode")
      loop.run(until: .distantFuture)
      return time.milliseconds
    }
    #expect(ended == 0)
  }

  @Test(
    "a run until a date uses the default mode, serves all sources, and ends with the last item", .rule(.r122))
  func until() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.after(.milliseconds(5), mode: "another mode") { _ in log.write("another mode's") }
      let source = RunLoop.Source { time.stamp(log, "S") }
      loop.add(source, forMode: .default)
      for date in [10, 11, 12] {
        time.at(.milliseconds(date)) {
          source.signal()
          loop.wakeUp()
        }
      }
      loop.after(.milliseconds(15)) { _ in log.write(loop.currentMode?.rawValue ?? "none") }
      loop.run(until: .virtual(20))
      time.stamp(log, "@")
      time.at(.milliseconds(30)) {
        source.invalidate()
        // A removal does not wake the loop.
        loop.wakeUp()
      }
      loop.run(until: .virtual(50))
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "S10 S11 S12 kCFRunLoopDefaultMode @20 @30")
  }

  @Test("a stop does not end a run until a date", .rule(.r43, .r122))
  func stopped() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      for date in [5, 6, 7] { time.at(.milliseconds(date)) { loop.stop() } }
      time.at(.milliseconds(8)) { loop.stop(mode: .default) }
      loop.run(until: .virtual(20))
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "@20")
  }

  @Test(
    "setting the wall clock makes a run neither longer nor shorter", .rule(.r14, .m29),
    arguments: [Duration.seconds(3600), .seconds(-3600)])
  func wallClock(change: Duration) {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      time.at(.milliseconds(5)) { time.setWallClock(by: change) }
      time.at(.milliseconds(6)) { loop.stop() }
      loop.run(until: .virtual(20))
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "@20")
  }

  @Test("on a stopping thread's loop no run makes a pass, and the usual loop around runs ends", .rule(.m24))
  func stopping() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.stopForGood() }
      var turns = 0
      while loop.run(mode: .default, before: .distantFuture) { turns += 1 }
      time.stamp(log, "\(turns) turns @")
      loop.signalled(wakes: true) { log.write("never") }
      loop.run()
      loop.run(until: .distantFuture)
      loop.acceptInput(forMode: .default, before: .distantFuture)
      log.write("\(loop.limitDate(forMode: .default)?.text ?? "none")")
      log.write("\(loop.run(mode: .default, before: .distantPast))")
      return log.text
    }
    #expect(log == "1 turns @5 none false")
  }

  @Test("a thread that begins to stop ends a run until a date and an indefinite run", .rule(.m24))
  func beginsToStop() {
    for run in [{ $0.run() }, { $0.run(until: .distantFuture) }] as [@Sendable (RunLoop) -> Void] {
      let ended = onVirtualTime { time, loop in
        loop.keepAlive()
        time.at(.milliseconds(5)) { loop.stopForGood() }
        run(loop)
        return time.milliseconds
      }
      #expect(ended == 5)
    }
  }

  @Test("the common pseudo-mode cannot be run", .rule(.r16, .m11))
  func commonModes() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      loop.keepAlive(.common)
      log.write("\(loop.run(mode: .common, before: .distantFuture))")
      loop.acceptInput(forMode: .common, before: .distantFuture)
      log.write("\(loop.limitDate(forMode: .common)?.text ?? "none")")
      log.write("\(loop.nextFireDate(forMode: .common)?.text ?? "none") \(time.milliseconds)")
      return log.text
    }
    #expect(log == "false none none 0")
  }

  @Test("a run before a date can be nested in a call-out, and ends independently", .rule(.r108, .r121))
  func nested() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      loop.after(.milliseconds(5)) { _ in
        log.write("[")
        loop.after(.milliseconds(3), mode: "inner") { _ in time.stamp(log, "I") }
        log.write("\(loop.run(mode: "inner", before: .virtual(50)))")
        log.write("]")
        loop.stop()
      }
      log.write("\(loop.run(mode: .default, before: .virtual(50)))")
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "[ I8 true ] true @8")
  }

  @Test(
    "on a thread that is not the loop's no run is made: false, nil or nothing, and each is reported",
    .rule(.r18, .r121, .r123, .m15))
  func otherThread() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onVirtualTime { _, loop in
        loop.signalled(wakes: true) { fatalError("a source was performed") }
        loop.after(.milliseconds(0)) { _ in fatalError("a timer was called") }
        for _ in 0..<3 {
          onNewThread {
            loop.run()
            loop.run(until: .distantFuture)
            loop.acceptInput(forMode: .default, before: .distantFuture)
            loop.acceptInput(forMode: "a name" as String, before: .distantFuture)
            precondition(!loop.run(mode: .default, before: .distantFuture))
            precondition(loop.limitDate(forMode: .default) == nil)
            precondition(loop.nextFireDate(forMode: .default) != nil)
          }
        }
      }
    }
    let lines = diagnostics(try #require(result).standardErrorContent)
    let spellings = [
      "run()", "run(until:)", "acceptInput(forMode:before:)", "acceptInput(forMode:before:)", "run(mode:before:)",
      "limitDate(forMode:)",
    ]
    #expect(lines.map { $0.split(separator: " ")[1] }.prefix(6) == spellings.map { Substring($0) }[...])
    #expect(lines.allSatisfy { $0.contains("and did nothing: a run loop is run by its own thread") })
    // Of eighteen, the first eight and the sixteenth are reported.
    #expect(lines.count == 9)
  }

  @Test(
    "in the last destructors of a thread, when its loop has ended, a run returns false and reports nothing",
    .rule(.r17, .m15))
  func ended() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onVirtualTime { _, loop in
        loop.keepAlive()
        RunLoop.detachCurrent()
        for loop in [loop, RunLoop.current] {
          loop.run(until: .distantFuture)
          precondition(!loop.run(mode: .default, before: .distantFuture))
          precondition(loop.limitDate(forMode: .default) == nil)
        }
      }
    }
    #expect(diagnostics(try #require(result).standardErrorContent) == [])
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Modes", .timeLimit(.minutes(20)))
struct ModeTests {
  @Test("modes are the same when their names are", .rule(.r20))
  func names() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled(mode: RunLoop.Mode("a")) { log.write("S0") }
      loop.run(log, mode: RunLoop.Mode(rawValue: ["a"].joined()), for: .zero)
    }
    #expect(log == "S0 timedOut")
  }

  @Test("a run serves what is in its mode, and nothing else", .rule(.r20))
  func separate() {
    let log = record { _, loop, log in
      loop.signalled { log.write("default") }
      loop.signalled(mode: "a") { log.write("a") }
      loop.perform { log.write("B") }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log, mode: "a")
    }
    #expect(log == "a timedOut")
  }

  @Test("a new loop has the default mode, and only that is common", .rule(.r21))
  func new() {
    let log = record(observing: nil) { _, loop, log in
      log.write("\(loop.modes)")
      let source = RunLoop.Source(schedule: { _, mode in log.write("\(mode)") }, perform: {})
      loop.add(source, forMode: .common)
      log.write("\(loop.modes.count)")
    }
    #expect(log == "[kCFRunLoopDefaultMode] kCFRunLoopDefaultMode 1")
  }

  @Test("items, blocks and stops make the modes that they name", .rule(.r22, .r30))
  func made() {
    let modes = onVirtualTime { _, loop in
      loop.keepAlive("source")
      loop.after(.zero, mode: "timer") { _ in }
      loop.once(.entry, mode: "observer") {}
      loop.port(messages: 0, mode: "port") {}
      loop.perform(inModes: ["block 1", "block 2"]) {}
      loop.stop(mode: "stop")
      return loop.modes
    }
    #expect(modes == [.default, "source", "timer", "observer", "port", "block 1", "block 2", "stop"])
  }

  @Test("queries, removals, runs and making a mode common do not create a mode", .rule(.r22))
  func notMade() {
    let modes = onVirtualTime { _, loop in
      let source = RunLoop.Source {}
      loop.remove(source, forMode: "a")
      _ = loop.contains(source, forMode: "b")
      _ = loop.nextDeadline(forMode: "c")
      loop.run(mode: "d", for: .zero)
      try? loop.addCommonMode("e")
      return loop.modes
    }
    #expect(modes == [.default])
  }

  @Test("the first common item creates a common mode", .rule(.r22, .r101))
  func madeByCommonItem() {
    let modes = onVirtualTime { _, loop in
      try? loop.addCommonMode("a")
      loop.add(RunLoop.Source {}, forMode: .common)
      return loop.modes
    }
    #expect(modes == [.default, "a"])
  }

  @Test(
    "the common pseudo-mode is never a mode, whatever names it", .rule(.r30, .r100, .m11),
    arguments: [RunLoop.Mode.common, "kCFRunLoopCommonModes"])
  func pseudoMode(mode: RunLoop.Mode) {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: [mode]) { log.write("B1") }
      loop.perform(inModes: [mode, "a"]) { log.write("B2") }
      loop.signalled(mode: mode) { log.write("S0") }
      loop.stop(mode: mode)
      log.write(loop.modes.map(\.rawValue).sorted().joined(separator: " "))
      loop.run(log, for: .zero)
    }
    #expect(log == "a kCFRunLoopDefaultMode B1 B2 S0 timedOut")
  }

  @Test("a mode stays when it is empty", .rule(.r23))
  func stays() {
    let modes = onVirtualTime { _, loop in
      let source = loop.keepAlive("a")
      loop.remove(source, forMode: "a")
      return loop.modes
    }
    #expect(modes == [.default, "a"])
  }

  @Test("the current mode is the innermost one, restored afterwards, and can be read from any thread", .rule(.r31))
  func current() {
    let log = record(observing: nil) { _, loop, log in
      let write = { @Sendable in log.write(onNewThread { loop.currentMode?.rawValue ?? "none" }) }
      loop.keepAlive("inner")
      write()
      loop.signalled(mode: "outer") {
        write()
        loop.once(.entry, mode: "inner", write)
        loop.once(.exit, mode: "inner", write)
        loop.run(mode: "inner", for: .zero)
        write()
      }
      loop.run(mode: "outer", for: .zero)
      write()
    }
    #expect(log == "none outer inner inner outer none")
  }

  @Test("the next deadline of a mode is that of its first timer", .rule(.r32))
  func nextDeadline() {
    let log = record(observing: nil) { _, loop, log in
      log.write(loop.deadline(.default))
      loop.after(.seconds(2)) { _ in }
      loop.after(.seconds(1)) { _ in }
      loop.after(.milliseconds(1), mode: "other") { _ in }
      for mode: RunLoop.Mode in [.default, "other", "unknown", .common] { log.write(loop.deadline(mode)) }
    }
    #expect(log == "none 1000 1 none none")
  }

  @Test("a timer that is being called still counts for the next deadline", .rule(.r32))
  func nextDeadlineWhileFiring() {
    let log = record(observing: nil) { _, loop, log in
      loop.after(.seconds(9)) { _ in }
      loop.after(.milliseconds(5)) { _ in log.write(loop.deadline(.default)) }
      loop.run(log)
      log.write(loop.deadline(.default))
    }
    #expect(log == "5 timedOut 9000")
  }

  @Test("the next deadline is the date as it was set, also in the past", .rule(.r32, .r93))
  func nextDeadlineInThePast() {
    let log = record(observing: nil) { time, loop, log in
      time.advance(by: .seconds(10))
      loop.after(.seconds(-1)) { _ in log.write(loop.deadline(.default)) }
      log.write(loop.deadline(.default))
      loop.run(log)
    }
    #expect(log == "9000 9000 finished")
  }

  @Test("a loop is waiting only between the observers before and after the wait", .rule(.r33))
  func isWaiting() {
    let log = record(observing: nil) { time, loop, log in
      let write = { @Sendable (entry: String) in log.write("\(entry):\(onNewThread { loop.isWaiting })") }
      write("before")
      loop.add(
        RunLoop.Observer(activities: .all) { _, activity in write(activity.letter) }, forMode: .default)
      loop.perform { write("B") }
      loop.after(.milliseconds(5)) { _ in write("T") }
      time.at(.milliseconds(2)) { write("asleep") }
      loop.run(log)
      write("after")
    }
    #expect(
      log == """
        before:false E:false BT:false BS:false B:false BW:false asleep:true AW:false T:false X:false finished after:false
        """)
  }
}

extension RunLoop {
  /// The next deadline of a mode, in milliseconds of virtual time.
  fileprivate func deadline(_ mode: Mode) -> String {
    nextDeadline(forMode: mode).map { "\(Tick($0).nanoseconds / 1_000_000)" } ?? "none"
  }
}

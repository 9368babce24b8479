// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Observers", .timeLimit(.minutes(20)))
struct ObserverTests {
  @Test("observers are called by order, and among equals as they were added", .rule(.r83))
  func order() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      for (name, order) in [("c", 1), ("a", -1), ("d", 1), ("b", 0), ("e", 2)] {
        loop.add(RunLoop.Observer(activities: .entry, order: order) { _, _ in log.write(name) }, forMode: .default)
      }
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "a b c d e")
  }

  @Test("an observer is called at the stages that it asked for", .rule(.r83), arguments: RunLoop.Activity.stages)
  func stages(activity: RunLoop.Activity) {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.observe(log, activity)
      loop.run(mode: .default, for: .seconds(1))
    }
    #expect(log == activity.letter)
  }

  @Test("the stages have Core Foundation's numbers", .rule(.r83))
  func numbers() {
    #expect(RunLoop.Activity.stages.map(\.rawValue) == [1, 2, 4, 32, 64, 128])
  }

  @Test(
    "an observer that does not repeat is called once, at the first of its stages, and is valid meanwhile", .rule(.r84))
  func once() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let observer = RunLoop.Observer(activities: .all, repeats: false) { observer, activity in
        log.write("\(activity.letter):\(observer.isValid):\(loop.contains(observer, forMode: .default))")
      }
      loop.add(observer, forMode: .default)
      loop.run(log)
      log.write("\(observer.isValid):\(loop.contains(observer, forMode: .default))")
    }
    #expect(log == "E:true:true timedOut false:false")
  }

  @Test("an observer that an earlier one removes is still called at this stage, and then no more", .rule(.r85))
  func removed() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let second = RunLoop.Observer(activities: .all, order: 1) { _, activity in log.write(activity.letter) }
      loop.once(.beforeTimers) { loop.remove(second, forMode: .default) }
      loop.add(second, forMode: .default)
      loop.run(log)
    }
    #expect(log == "E BT timedOut")
  }

  @Test("an observer that an earlier one invalidates is no longer called", .rule(.r85))
  func invalidated() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let second = RunLoop.Observer(activities: .all, order: 1) { _, activity in log.write(activity.letter) }
      loop.once(.beforeTimers) { second.invalidate() }
      loop.add(second, forMode: .default)
      loop.run(log)
    }
    #expect(log == "E timedOut")
  }

  @Test("an observer that is added at a stage is called from the next one on", .rule(.r85))
  func added() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.once(.beforeTimers) { loop.observe(log) }
      loop.run(log)
    }
    #expect(log == "BS BW AW X timedOut")
  }

  @Test("runs nested in an observer skip it at every stage, and call the others", .rule(.r86, .r91, .r109))
  func firing() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.add(
        RunLoop.Observer(activities: .all) { _, activity in
          log.write(activity.letter)
          if activity == .beforeTimers { loop.nest(log) }
        }, forMode: .default)
      loop.add(
        RunLoop.Observer(activities: .all, order: 1) { _, activity in log.write("\(activity.letter)2") },
        forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "E E2 BT [ E2 BT2 BS2 X2 timedOut ] BT2 BS BS2 X X2 timedOut")
  }

  @Test("an observer may be in several modes of one loop", .rule(.r87))
  func severalModes() {
    let log = record(observing: nil) { _, loop, log in
      let observer = RunLoop.Observer(activities: .entry) { _, _ in log.write(loop.currentMode?.rawValue ?? "none") }
      for mode: RunLoop.Mode in ["a", "b", "b"] {
        loop.keepAlive(mode)
        log.write("\(loop.add(observer, forMode: mode))")
      }
      loop.run(mode: "a", for: .zero)
      loop.run(mode: "b", for: .zero)
      loop.remove(observer, forMode: "a")
      loop.run(mode: "a", for: .zero)
      loop.run(mode: "b", for: .zero)
    }
    #expect(log == "true true true a b b")
  }

  @Test("an observer is free for another loop when it has left its last mode", .rule(.r87))
  func free() {
    let log = record(observing: nil) { _, loop, log in
      let observer = loop.observe(log, mode: "a", .entry)
      loop.add(observer, forMode: "b")
      onVirtualTime { _, second in
        second.keepAlive()
        loop.remove(observer, forMode: "a")
        log.write("\(second.add(observer, forMode: .default))")
        loop.remove(observer, forMode: "b")
        log.write("\(second.add(observer, forMode: .default))")
        second.run(log, for: .zero)
      }
    }
    #expect(log == "false true E timedOut")
  }

  @Test("an observer of no stage is never called", .rule(.r88))
  func noStage() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.observe(log, [])
      loop.run(log)
    }
    #expect(log == "timedOut")
  }

  @Test("the stages that a mode looks for shrink with its observers", .rule(.r88, .m23))
  func exactStages() {
    let log = record(observing: nil) { _, loop, log in
      let mode = loop.table.withLock { $0.mode(.default) }
      let write = {
        let watched = RunLoop.Activity.stages.filter { mode.observers(of: $0, of: loop) != nil }
        log.write("[\(watched.map(\.letter).joined(separator: " "))]")
      }
      let entry = loop.observe(log, .entry)
      let exit = loop.observe(log, .exit)
      write()
      loop.remove(exit, forMode: .default)
      write()
      entry.invalidate()
      write()
    }
    #expect(log == "[E X] [E] []")
  }

  @Test("an observer may remove and add itself in its call-out", .rule(.r90))
  func addsItselfAgain() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.add(
        RunLoop.Observer(activities: .all) { observer, activity in
          log.write(activity.letter)
          loop.remove(observer, forMode: .default)
          loop.add(observer, forMode: .default)
        }, forMode: .default)
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }

  @Test("an observer that was removed and added again comes after those of equal order", .rule(.r83, .r90))
  func placeAfterReturn() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let first = RunLoop.Observer(activities: .entry) { _, _ in log.write("a") }
      loop.add(first, forMode: .default)
      loop.add(RunLoop.Observer(activities: .entry) { _, _ in log.write("b") }, forMode: .default)
      loop.add(first, forMode: .default)
      loop.run(mode: .default, for: .zero)
      loop.remove(first, forMode: .default)
      loop.add(first, forMode: .default)
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "a b b a")
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Foundation's questions to a loop", .timeLimit(.minutes(20)))
struct LimitDateTests {
  @Test("the limit date is nil without items, that of the first timer, or the distant future", .rule(.r123))
  func limitDate() {
    let text = onVirtualTime { time, loop in
      var dates: [Date?] = [loop.limitDate(forMode: .default), loop.limitDate(forMode: "unknown")]
      let idle = loop.keepAlive()
      dates.append(loop.limitDate(forMode: .default))
      let second = Timer(fire: .virtual(20), interval: 0, repeats: false) { _ in }
      let first = Timer(fire: .virtual(10), interval: 0, repeats: false) { _ in }
      for timer in [second, first] { loop.add(timer, forMode: .default) }
      dates.append(loop.limitDate(forMode: .default))
      dates.append(loop.limitDate(forMode: "unknown"))
      first.fireDate = .distantFuture
      dates.append(loop.limitDate(forMode: .default))
      for timer in [second, first] { timer.invalidate() }
      dates.append(loop.limitDate(forMode: .default))
      idle.invalidate()
      dates.append(loop.limitDate(forMode: .default))
      return dates.map { $0?.text ?? "nil" }.joined(separator: " ") + " \(time.milliseconds) \(loop.modes.count)"
    }
    #expect(text == "nil nil future 10 nil 20 future nil 0 1")
  }

  @Test("asking for the limit date makes one pass: due timers fire, and at most one source performs", .rule(.r9, .r123))
  func limitDatePasses() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.perform { log.write("B") }
      loop.signalled(wakes: true) { log.write("S1") }
      loop.signalled(wakes: true) { log.write("S2") }
      let timer = Timer(fire: .virtual(0), interval: 0.01, repeats: true) { _ in time.stamp(log, "T") }
      loop.add(timer, forMode: .default)
      log.write("| \(loop.limitDate(forMode: .default)?.text ?? "nil") |")
      log.write("| \(loop.limitDate(forMode: .default)?.text ?? "nil") |")
      return log.text
    }
    #expect(log == "B S1 T0 | 10 | S2 | 10 |")
  }

  @Test("asking for the limit date fires a last due timer, and then nothing is left", .rule(.r123))
  func limitDateFiresLast() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.after(.milliseconds(0)) { _ in log.write("T") }
      log.write(loop.limitDate(forMode: .default)?.text ?? "nil")
      return log.text
    }
    #expect(log == "T nil")
  }

  @Test("the next fire date makes no pass, can be asked for on any thread, and may be in the past", .rule(.r32))
  func nextFireDate() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      @Sendable func ask() -> String { loop.nextFireDate(forMode: .default)?.text ?? "nil" }
      log.write(ask())
      loop.keepAlive()
      log.write(ask())
      let timer = Timer(fire: .virtual(10), interval: 0.01, repeats: true) { _ in
        time.advance(by: .milliseconds(3))
        log.write("[\(ask()) \(onNewThread { ask() })]")
      }
      loop.add(timer, forMode: .common)
      log.write(ask())
      time.advance(by: .milliseconds(14))
      log.write(ask())
      loop.run(mode: .default, before: .distantPast)
      log.write(ask())
      timer.fireDate = .distantFuture
      log.write(ask())
      timer.invalidate()
      log.write(ask())
      return log.text
    }
    #expect(log == "nil nil 10 10 [10 10] 20 future nil")
  }

  @Test("accepting input is a single run, which ends after a source or at the date", .rule(.r123))
  func acceptInput() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.acceptInput(forMode: .default, before: .distantFuture)
      time.stamp(log, "empty@")
      loop.keepAlive()
      loop.after(.milliseconds(5)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(10)) { loop.signalled(wakes: true) { time.stamp(log, "S") } }
      loop.acceptInput(forMode: .default, before: .distantFuture)
      time.stamp(log, "@")
      loop.acceptInput(forMode: .default, before: .virtual(30))
      time.stamp(log, "@")
      loop.signalled(wakes: true) { log.write("S") }
      loop.acceptInput(forMode: .default, before: .distantPast)
      time.stamp(log, "@")
      return log.text
    }
    #expect(log == "empty@0 T5 S10 @10 @30 S @30")
  }

  @Test("the mode can be spelt as in Apple's Foundation, as on Linux, or as a literal", .rule(.r123))
  func acceptInputSpellings() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let mode = RunLoop.Mode("name")
      let source = RunLoop.Source { log.write(loop.currentMode?.rawValue ?? "none") }
      loop.add(source, forMode: mode)
      let reference = loop.acceptInput(forMode:before:)
      source.signal()
      loop.acceptInput(forMode: mode, before: .distantPast)
      source.signal()
      loop.acceptInput(forMode: mode.rawValue, before: .distantPast)
      source.signal()
      loop.acceptInput(forMode: "name", before: .distantPast)
      source.signal()
      loop.acceptInput(forMode: .init("name"), before: .distantPast)
      source.signal()
      reference(mode, .distantPast)
      loop.acceptInput(forMode: RunLoop.Mode.default.rawValue, before: .distantPast)
      return log.text
    }
    #expect(log == "name name name name name")
  }

  @Test(
    "a block without modes is one for the default mode; with modes it runs once, in the first of them that runs",
    .rule(.r124))
  func perform() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.perform { log.write("default") }
      loop.perform(inModes: ["A", "B"]) { log.write("A or B") }
      loop.perform(inModes: [.common]) { log.write("common") }
      loop.keepAlive("A")
      loop.run(mode: "A", before: .distantPast)
      log.write("|")
      loop.run(mode: .default, before: .distantPast)
      log.write("|")
      loop.run(mode: "B", before: .distantPast)
      return log.text
    }
    #expect(log == "A or B | default common |")
  }

  @Test("a block that another thread posts wakes a loop that sleeps in Foundation's run", .rule(.r124, .m3))
  func performWakes() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.keepAlive()
      time.at(.milliseconds(5)) { loop.perform { time.stamp(log, "B") } }
      loop.run(until: .virtual(20))
      return log.text
    }
    #expect(log == "B5")
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers: which fire, and in which order", .timeLimit(.minutes(20)))
struct TimerOrderTests {
  @Test("timers fire by date and, among equals, as they were added", .rule(.r93))
  func order() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      for (name, date) in [("A", 10), ("B", 5), ("C", 10), ("D", 5)] {
        loop.add(Timer(at: date) { _ in log.write(name) }, forMode: .default)
      }
      time.advance(by: .milliseconds(20))
      loop.run(mode: .default, for: .zero)
      return log.text
    }
    #expect(log == "B D A C")
  }

  @Test("a date in the past counts from when it was set, but reads back as it is", .rule(.r93))
  func pastDate() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      time.advance(by: .milliseconds(10))
      let early = Timer(at: 2) { _ in log.write("early") }
      let equal = Timer(at: 10) { _ in log.write("equal") }
      time.advance(by: .milliseconds(10))
      let late = Timer(at: 1) { _ in log.write("late") }
      for timer in [late, equal, early] { loop.add(timer, forMode: .default) }
      log.write("\(early.deadline.milliseconds) \(late.deadline.milliseconds)")
      loop.run(mode: .default, for: .zero)
      return log.text
    }
    #expect(log == "2 1 equal early late")
  }

  @Test("a timer that is given a date, even the same one, comes after all others with that date", .rule(.r93))
  func movedBehind() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let first = loop.after(.milliseconds(10)) { _ in log.write("A") }
      loop.after(.milliseconds(10)) { _ in log.write("B") }
      first.deadline = time.instant(10)
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "B A")
  }

  @Test(
    "a timer given a date in its own call-out comes before those given it later",
    .rule(.r93, .r99))
  func turnOfOneBeingCalled() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let other = Timer(at: 50) { _ in time.stamp(log, "B") }
      loop.add(other, forMode: .default)
      loop.every(.milliseconds(5)) { timer in
        time.stamp(log, "A")
        timer.deadline = time.instant(20)
        other.deadline = time.instant(20)
        if time.milliseconds == 20 { timer.invalidate() }
      }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "A5 A20 B20")
  }

  @Test("of several timers being called, the first by date and turn is the mode's next date", .rule(.r32))
  func nextDateOfSeveralBeingCalled() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      time.advance(by: .milliseconds(10))
      for date in [3, 1, 2] {
        let timer = Timer(at: date) { _ in
          loop.run(mode: .default, for: .zero)
          log.write("\(loop.nextDeadline(forMode: .default)?.milliseconds ?? -1)")
        }
        loop.add(timer, forMode: .default)
      }
      loop.run(mode: .default, for: .zero)
      return log.text
    }
    // The innermost call belongs to the last timer.
    #expect(log == "3 3 3")
  }

  @Test("repeating timers of one phase keep their order", .rule(.r93, .r97))
  func samePhase() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      for name in ["A", "B", "C"] { loop.every(.milliseconds(10)) { _ in log.write(name) } }
      loop.run(mode: .default, for: .milliseconds(25))
      return log.text
    }
    #expect(log == "A B C A B C")
  }

  @Test("a timer that becomes due during the pass fires in the next", .rule(.r94))
  func addedDuringPass() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      let late = loop.after(.milliseconds(50)) { _ in log.write("moved") }
      loop.after(.milliseconds(5)) { _ in
        log.write("A")
        loop.add(Timer(at: 1) { _ in log.write("added") }, forMode: .default)
        late.deadline = time.instant(0)
      }
      loop.after(.milliseconds(5)) { _ in log.write("B") }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW A B BT BS BW AW added moved X")
  }

  @Test("of the due timers, one that an earlier one invalidates or removes does not fire", .rule(.r94))
  func removedByEarlier() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let ended = Timer(at: 5) { _ in log.write("ended") }
      let removed = Timer(at: 5) { _ in log.write("removed") }
      let removedCommon = Timer(at: 5) { _ in log.write("removedCommon") }
      loop.after(.milliseconds(5)) { _ in
        log.write("A")
        ended.invalidate()
        loop.remove(removed, forMode: .default)
        loop.remove(removedCommon, forMode: .common)
      }
      loop.add(ended, forMode: .default)
      loop.add(removed, forMode: .default)
      loop.add(removedCommon, forMode: .common)
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "A finished")
  }

  @Test("of the due timers, one that an earlier one removes from this mode only still fires", .rule(.r94))
  func removedFromOneMode() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let timer = Timer(at: 5) { _ in log.write("B") }
      loop.after(.milliseconds(5)) { _ in
        log.write("A")
        loop.remove(timer, forMode: .default)
      }
      loop.add(timer, forMode: .default)
      loop.add(timer, forMode: "other")
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "A B finished")
  }

  @Test("a due timer that an earlier one moves to a later date fires then", .rule(.r94))
  func movedByEarlier() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 5) { _ in time.stamp(log, "B") }
      loop.after(.milliseconds(5)) { _ in
        time.stamp(log, "A")
        timer.deadline = time.instant(20)
      }
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "A5 B20")
  }

  @Test("a due timer that an earlier one moves still fires if the new date is reached during that call", .rule(.r94))
  func movedAndDueByThen() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer(at: 5) { _ in time.stamp(log, "B") }
      loop.observe(log)
      loop.after(.milliseconds(5)) { _ in
        time.stamp(log, "A")
        timer.deadline = time.instant(20)
        time.advance(by: .milliseconds(15))
      }
      loop.add(timer, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW A5 B20 X")
  }

  @Test("due timers are fixed before the first call-out, and a call-out's duration makes no others due", .rule(.r94))
  func settledBefore() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      loop.after(.milliseconds(5)) { _ in
        log.write("A")
        time.advance(by: .milliseconds(10))
      }
      loop.after(.milliseconds(8)) { _ in log.write("B") }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS BW AW A BT BS BW AW B X")
  }

  @Test(
    "a nested run skips the timer that is being called, fires the others, and the outer pass skips those", .rule(.r99a))
  func nested() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.every(.milliseconds(10)) { _ in
        time.stamp(log, "T")
        log.write("\(loop.run(mode: .default, for: .milliseconds(25)))")
      }
      loop.every(.milliseconds(10)) { _ in time.stamp(log, "U") }
      loop.run(mode: .default, for: .milliseconds(36))
      return log.text
    }
    #expect(log == "T10 U10 U20 U30 timedOut")
  }

  @Test("a due timer that fires once does so in a nested run, and not again in the pass around it", .rule(.r99a))
  func nestedOneShot() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.after(.milliseconds(10)) { _ in
        log.write("T(")
        loop.run(mode: .default, for: .zero)
        log.write(")T")
      }
      loop.after(.milliseconds(10)) { _ in log.write("U") }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "T( U )T finished")
  }

  @Test("a timer that is being called keeps a nested run alive, without firing in it", .rule(.r26, .r99a))
  func firingCounts() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.after(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        timer.deadline = time.instant(12)
        log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
        time.stamp(log, "at")
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "T10 timedOut at15 finished")
  }

  @Test("random timers that move and end fire as a plain list of them does", .rule(.r93, .r97, .r99), arguments: 1...10)
  func model(seed: Int) {
    let (seen, expected) = onVirtualTime { time, loop in
      var random = SplitMix64(seed: UInt64(seed))
      let log = Log()
      var model = TimerModel()
      let timers = (0..<40).map { name in
        let date = random.below(60)
        let interval = random.oneIn(2) ? 1 + random.below(30) : 0
        model.add(name, at: date, every: interval)
        let timer = Timer(at: date, every: interval == 0 ? nil : .milliseconds(interval)) { _ in
          time.stamp(log, "\(name)@")
        }
        loop.add(timer, forMode: .default)
        return timer
      }
      loop.keepAlive()
      for moment in stride(from: 3, through: 90, by: 3) {
        let name = random.below(timers.count)
        let date = random.oneIn(4) ? nil : random.below(120)
        model.at(moment, name, date)
        time.at(.milliseconds(moment)) {
          if let date { timers[name].deadline = time.instant(date) } else { timers[name].invalidate() }
        }
      }
      loop.run(mode: .default, for: .milliseconds(120))
      return (log.text, model.run(until: 120))
    }
    #expect(seen == expected)
  }
}

/// A deliberately simple model of a loop with only timers: a list that is searched for every step.
private struct TimerModel {
  private struct Entry {
    var tick: Int
    var insertion: Int
    let interval: Int
  }

  private var entries: [Int: Entry] = [:]
  private var changes: [(moment: Int, name: Int, date: Int?)] = []
  private var insertions = 0

  mutating func add(_ name: Int, at date: Int, every interval: Int) {
    insertions += 1
    entries[name] = Entry(tick: date, insertion: insertions, interval: interval)
  }

  mutating func at(_ moment: Int, _ name: Int, _ date: Int?) { changes.append((moment, name, date)) }

  mutating func run(until end: Int) -> String {
    var log: [String] = []
    var now = 0
    while now <= end {
      // Changes by another thread while the loop sleeps until this moment come before the timers of the moment.
      while let change = changes.first, change.moment <= now {
        changes.removeFirst()
        guard var entry = entries[change.name] else { continue }
        insertions += 1
        entry.tick = max(change.date ?? 0, change.moment)
        entry.insertion = insertions
        entries[change.name] = change.date == nil ? nil : entry
      }
      let due = entries.filter { $0.value.tick <= now }
        .sorted { ($0.value.tick, $0.value.insertion) < ($1.value.tick, $1.value.insertion) }
      for (name, entry) in due {
        log.append("\(name)@\(now)")
        insertions += 1
        let missed = entry.interval == 0 ? 0 : (now - entry.tick) / entry.interval + 1
        let next = Entry(tick: entry.tick + missed * entry.interval, insertion: insertions, interval: entry.interval)
        entries[name] = entry.interval == 0 ? nil : next
      }
      now += 1
    }
    return log.joined(separator: " ")
  }
}

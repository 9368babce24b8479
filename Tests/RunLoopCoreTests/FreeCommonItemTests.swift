// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// A common timer or observer that has left its last mode has no loop until it is added to a mode again.
@Suite("Common items that have left their last mode", .timeLimit(.minutes(20)))
struct FreeCommonItemTests {
  enum Kind: String, CaseIterable {
    case timer, observer
  }

  /// Creates a common item that has left its only mode of `loop` and logs its calls.
  private func freed(_ kind: Kind, _ loop: RunLoop, _ log: Log) -> AnyItem {
    let item: AnyItem =
      switch kind {
      case .timer: .timer(Timer(at: 0, every: .milliseconds(10)) { _ in log.write("T") })
      case .observer: .observer(RunLoop.Observer(activities: .entry) { _, _ in log.write("O") })
      }
    item.add(to: loop, .common)
    item.remove(from: loop, .default)
    return item
  }

  @Test("are not among the loop's common items for those who ask", .rule(.r99g, .r106, .m9), arguments: Kind.allCases)
  func contains(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      log.write("\(item.isIn(loop, .common)) \(item.isIn(loop, .default))")
    }
    #expect(log == "false false")
  }

  @Test("can join another loop, which takes them out of the common items", .rule(.r87, .r99b), arguments: Kind.allCases)
  func joinsAnother(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      onVirtualTime { _, other in
        log.write("\(item.add(to: other, .default)) \(loop.table.withLock { $0.commonItems.count })")
        // It does not return to the first loop, and stays in the other.
        try? loop.addCommonMode("a")
        log.write("\(item.isIn(loop, "a")) \(item.isIn(other, .default))")
        log.write("\(item.add(to: loop, .default))")
        other.keepAlive()
        other.run(log, for: .zero)
        item.invalidate()
      }
      loop.keepAlive()
      loop.run(log, for: .zero)
    }
    #expect(log == "true 0 false true false \(kind == .timer ? "T" : "O") timedOut timedOut")
  }

  @Test("can become another loop's common items", .rule(.r87, .r99b, .r101), arguments: Kind.allCases)
  func joinsCommonItems(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      onVirtualTime { _, other in
        log.write("\(item.add(to: other, .common))")
        log.write("\(loop.table.withLock { $0.commonItems.count }) \(other.table.withLock { $0.commonItems.count })")
        log.write("\(item.isIn(loop, .common)) \(item.isIn(other, .common))")
        item.invalidate()
        log.write("\(other.table.withLock { $0.commonItems.count })")
      }
    }
    #expect(log == "true 0 1 false true 0")
  }

  @Test("free items enter a mode that becomes common, and are common again", .rule(.r103), arguments: Kind.allCases)
  func comeBack(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      try? loop.addCommonMode("a")
      log.write("\(item.isIn(loop, "a")) \(item.isIn(loop, .common)) \(item.isIn(loop, .default))")
    }
    #expect(log == "true true false")
  }

  @Test(
    "free common items that are added to a mode again are still common, until they are removed", .rule(.r103, .r104),
    arguments: Kind.allCases)
  func addedAgain(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      item.add(to: loop, "a")
      log.write("\(item.isIn(loop, .common))")
      item.remove(from: loop, .common)
      log.write("\(item.isIn(loop, .common)) \(item.isIn(loop, "a"))")
    }
    #expect(log == "true false true")
  }

  @Test("free items leave the common items when invalidated", .rule(.r106, .m9), arguments: Kind.allCases)
  func invalidated(kind: Kind) {
    let log = record(observing: nil) { _, loop, log in
      let item = freed(kind, loop, log)
      item.invalidate()
      log.write("\(loop.table.withLock { $0.commonItems.count })")
    }
    #expect(log == "0")
  }

  @Test("do not fire: an earlier timer of the same wake-up has taken a common one out of its only mode", .rule(.r94))
  func doesNotFire() {
    let log = record(observing: nil) { time, loop, log in
      let second = Timer(at: 10) { _ in log.write("second") }
      loop.add(Timer(at: 10) { _ in loop.remove(second, forMode: .default) }, forMode: .default)
      loop.add(second, forMode: .common)
      loop.run(log, for: .milliseconds(20))
    }
    #expect(log == "finished")
  }

  @Test("can join another loop when their own is gone", .rule(.r87, .r99b), arguments: Kind.allCases)
  func loopIsGone(kind: Kind) {
    let log = Log()
    let item = onVirtualTime { _, loop in freed(kind, loop, log) }
    onVirtualTime { _, other in
      log.write("\(item.add(to: other, .common)) \(item.isIn(other, .common))")
      item.invalidate()
    }
    #expect(log.text == "true true")
  }

  @Test("join one of two loops that both add them, and stay with it", .rule(.r87, .r99b), arguments: Kind.allCases)
  func race(kind: Kind) {
    let outcomes = onVirtualTime { _, loop in
      (0..<200).map { _ in
        let item = freed(kind, loop, Log())
        let start = Latch()
        let joined = Latch()
        let others = (0..<2).map { _ in
          startThread {
            let other = RunLoop.current
            start.wait()
            let isAdded = item.add(to: other, .default)
            if isAdded { joined.open() }
            joined.wait()
            return isAdded == item.isIn(other, .default) && isAdded ? 1 : 0
          }
        }
        start.open()
        let count = others.map { $0.result() }.reduce(0, +)
        let common = loop.table.withLock { $0.commonItems.count }
        item.invalidate()
        return "\(count) \(common)"
      }
    }
    // If the first loop's thread ended before the second loop tried, both had the item one after another.
    #expect(outcomes.allSatisfy { $0 == "1 0" || $0 == "2 0" })
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The order of sources")
struct SourceOrderTests {
  /// Adds sources by name and order, signals them by name, and logs one pass.
  private func pass(_ sources: [(name: String, order: Int)], signals: [String]) -> String {
    record(observing: nil) { _, loop, log in
      let made = sources.map { name, order in
        (name, RunLoop.Source(order: order) { log.write(name) })
      }
      for (_, source) in made { loop.add(source, forMode: .default) }
      for signal in signals { for (name, source) in made where name == signal { source.signal() } }
      loop.run(mode: .default, for: .zero)
    }
  }

  @Test("the smaller order first", .rule(.r62))
  func byOrder() {
    #expect(pass([("b", 1), ("c", .max), ("a", .min)], signals: ["b", "c", "a"]) == "a b c")
  }

  @Test("among sources of equal order, the one signalled first comes first", .rule(.r62))
  func bySignal() {
    #expect(pass([("a", 0), ("b", 0), ("c", 0)], signals: ["c", "a", "b"]) == "c a b")
  }

  @Test("a second signal does not change the place", .rule(.r62, .r63))
  func byFirstSignal() {
    #expect(pass([("a", 0), ("b", 0)], signals: ["a", "b", "a"]) == "a b")
  }

  @Test("a source's order counts before the time of its signal", .rule(.r62))
  func orderBeforeSignal() {
    #expect(pass([("a", 1), ("b", 0), ("c", 1), ("d", 0)], signals: ["c", "d", "a", "b"]) == "d b c a")
  }

  @Test("the time of the signal also counts for a source that was in no mode then", .rule(.r62, .r70))
  func signalledBefore() {
    let log = record(observing: nil) { _, loop, log in
      let first = RunLoop.Source { log.write("a") }
      first.signal()
      loop.signalled { log.write("b") }
      loop.add(first, forMode: .default)
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "a b")
  }

  @Test("runs that return after a source take them in their order, also what was signalled between", .rule(.r9, .r62))
  func onePerRun() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled(order: 1) { log.write("b") }
      loop.signalled(order: 2) { log.write("c") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.signalled(order: 0) { log.write("a") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "b handledSource a handledSource c handledSource")
  }

  @Test(
    "runs that return after a source pass over a waiting source at most once per other source", .rule(.r9, .m19))
  func passedOverOnce() {
    let log = record(observing: nil) { _, loop, log in
      for (order, name) in [(-2, "a"), (-1, "b")] {
        let source = RunLoop.Source(order: order) { source in
          log.write(name)
          source.signal()
        }
        loop.add(source, forMode: .default)
        source.signal()
      }
      loop.signalled(order: 1) { log.write("late") }
      for _ in 0..<6 { loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true) }
    }
    #expect(log == "a b late a b a")
  }

  @Test("a source signalled before its last turn was recorded still gets its turn", .rule(.r9, .m19))
  func lateNumber() {
    let log = record(observing: nil) { _, loop, log in
      for name in ["a", "b"] {
        let source = loop.signalled { log.write(name) }
        source.lastTurn.store(.max - 1, ordering: .relaxed)
      }
      for _ in 0..<3 { loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true) }
    }
    #expect(log == "a b")
  }

  @Test(
    "in runs that return after a source, one of a smaller order does not keep hand-offs waiting", .rule(.r9, .m19, .m34)
  )
  func handOffsTurn() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source(order: -1) { source in
        log.write("a")
        source.signal()
      }
      loop.add(source, forMode: .default)
      source.signal()
      _ = loop.handOff(inModes: [.default]) { log.write("h") }
      for _ in 0..<4 { loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true) }
    }
    #expect(log == "a h a a")
  }

  @Test("a source that signals itself performs after those that were signalled before", .rule(.r62, .r64))
  func behindTheOthers() {
    let log = record(observing: nil) { _, loop, log in
      let first = Box<RunLoop.Source?>(nil)
      let second = RunLoop.Source { log.write("b") }
      loop.add(second, forMode: .default)
      first.value = loop.signalled {
        log.write("a")
        second.signal()
        if log.count(of: "a") == 1 { first.value?.signal() }
      }
      loop.run(log)
      first.value = nil
    }
    #expect(log == "a b a b timedOut")
  }

  @Test("a source's order is fixed at its creation", .rule(.r76))
  func immutable() {
    #expect(RunLoop.Source(order: -3) {}.order == -3)
  }
}

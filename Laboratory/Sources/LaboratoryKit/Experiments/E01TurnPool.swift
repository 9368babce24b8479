// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// E1: the pool that is opened at the entry, drained before the wait and closed at the exit.
struct AutoreleasePool: Experiment {
  let id = "E1"
  let title = "The autorelease pool of a turn"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    The main loop has two observers whose call-out is _wrapRunLoopWithAutoreleasePoolHandler. The first, of order -2147483647, \
    opens a pool at the entry, before all other call-outs. The second, of order 2147483647, closes it and opens another before \
    the wait, and closes it at the exit, after all other call-outs. What event and timer call-outs leave behind is in between.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    The dump of an application's main loop that Xilankong prints: order = -2147483647, activities = 0x1, and order = 2147483647, \
    activities = 0xa0.
    """
  let difference = Difference.addition(
    """
    There is no autorelease pool in Swift on Linux. TurnPool of RunLoopTransactions has the two observers, on any loop that it \
    is installed in, and keeps what it is given by hand.
    """)

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "the observers in a loop's description", observers(bench),
      requires: "activities = 0x1 order = -2147483647, activities = 0xa0 order = 2147483647")
    outcome.observe(
      "pools open at the entry, for observers of the orders -2147483648, -2147483646 and 2147483647", atEntry(bench),
      requires: "0 1 1")
    outcome.observe(
      "what a source, a timer and a timer of the last pass leave, between observers of the orders 2147483646 and 2147483648",
      turns(bench),
      requires: """
        entry source | beforeWaiting 2147483646 released:source 2147483648 | timer | beforeWaiting 2147483646 released:timer \
        2147483648 | last timer | exit 2147483646 released:last 2147483648
        """)
    outcome.observe(
      "what a run within a source leaves, and what the source had left before", nested(bench),
      requires: "released:inner returned released:outer")
    outcome.observe("pools opened and closed after these runs", counts(bench), requires: "4 opened, 4 closed")
    outcome.observe(
      "what a source leaves in a mode that became common later", laterMode(bench), requires: "source released:source")
    return outcome
  }

  private func observers(_ bench: Bench) -> String {
    bench.onLoop { rig in
      TurnPool.install(in: rig.loop)
      let lines = rig.loop.debugDescription.split(separator: "\n").filter { $0.contains("activities = ") }
      // An observer of the common modes is described both with the common items and with its mode.
      var found: [String] = []
      for line in lines {
        let parts = line.split(separator: ", ").filter { $0.hasPrefix("activities = ") || $0.hasPrefix("order = ") }
        let text = parts.map { $0.filter { $0 != "}" } }.joined(separator: " ")
        if !found.contains(text) { found.append(text) }
      }
      for line in found { rig.note("observer { \(line) }") }
      return found.sorted().joined(separator: ", ")
    }
  }

  private func atEntry(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let open = Record()
      TurnPool.install(in: rig.loop)
      for order in [-2_147_483_648, -2_147_483_646, 2_147_483_647] {
        rig.observe(.entry, order: order) { observer, _ in
          let count = TurnPool.current == nil ? 0 : 1
          rig.note("entry, order = \(observer.order): \(count) open")
          open.write("\(count)")
        }
      }
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(1))
      return open.text
    }
  }

  private func turns(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let events = Record()
      TurnPool.install(in: rig.loop)
      @Sendable func write(_ event: String) {
        rig.note(event)
        events.write(event)
      }
      rig.observe(.entry) { _, _ in write("entry") }
      rig.observe([.beforeWaiting, .exit], order: 2_147_483_646) { observer, activity in
        write("| \(activity.name) \(observer.order)")
      }
      rig.observe([.beforeWaiting, .exit], order: 2_147_483_648) { observer, _ in write("\(observer.order)") }
      let source = RunLoop.Source {
        write("source")
        TurnPool.current?.keep(Left("source", write))
      }
      rig.loop.add(source, forMode: .default)
      source.signal()
      for (seconds, name) in [(1, "timer"), (2, "last")] {
        let timer = Timer(deadline: rig.now.advanced(by: .seconds(seconds))) { _ in
          write(name == "last" ? "| last timer" : "| timer")
          TurnPool.current?.keep(Left(name, write))
        }
        rig.loop.add(timer, forMode: .default)
      }
      rig.loop.run(mode: .default, for: .seconds(2))
      return events.text
    }
  }

  private func nested(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let events = Record()
      nest(rig, events)
      return events.text
    }
  }

  private func counts(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let (opened, closed) = (Tally(), Tally())
      // The first call-out after each pool is opened adds one object to it.
      for (stage, order) in [(RunLoop.Activity.entry, 0), (.beforeWaiting, 2_147_483_648)] {
        rig.observe(stage, order: order) { _, _ in
          opened.add()
          TurnPool.current?.keep(Left("", { _ in closed.add() }))
        }
      }
      nest(rig, Record())
      return "\(opened.count) opened, \(closed.count) closed"
    }
  }

  /// Runs a loop with a source that leaves an object, runs the loop nested, and returns.
  private func nest(_ rig: Rig, _ events: Record) {
    @Sendable func write(_ event: String) {
      rig.note(event)
      events.write(event)
    }
    TurnPool.install(in: rig.loop)
    let outer = RunLoop.Source {
      TurnPool.current?.keep(Left("outer", write))
      let inner = RunLoop.Source { TurnPool.current?.keep(Left("inner", write)) }
      rig.loop.add(inner, forMode: .default)
      inner.signal()
      rig.loop.run(mode: .default, for: .seconds(1))
      write("returned")
    }
    rig.loop.add(outer, forMode: .default)
    outer.signal()
    rig.loop.run(mode: .default, for: .seconds(2))
  }

  private func laterMode(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let events = Record()
      @Sendable func write(_ event: String) {
        rig.note(event)
        events.write(event)
      }
      TurnPool.install(in: rig.loop)
      try? rig.loop.addCommonMode(.tracking)
      let source = RunLoop.Source {
        write("source")
        TurnPool.current?.keep(Left("source", write))
      }
      rig.loop.add(source, forMode: .tracking)
      source.signal()
      rig.loop.run(mode: .tracking, for: .seconds(1))
      return events.text
    }
  }
}

/// An object that only the pool retains.
private final class Left: Sendable {
  private let name: String
  private let write: @Sendable (String) -> Void

  init(_ name: String, _ write: @escaping @Sendable (String) -> Void) {
    self.name = name
    self.write = write
  }

  deinit { write("released:\(name)") }
}

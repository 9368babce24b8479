// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// B8: whether a run ends when its items are removed.
struct LastItemGoes: Experiment {
  let id = "B8"
  let title = "A run whose items are all removed"
  let articles: [Article] = [.qiu]
  let claim = """
    Apple, as Qiu quotes: removing all known input sources and timers from a run loop is not a guarantee that it will exit. \
    The system can install and remove sources of its own, which keep it from exiting.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R28 and R28c of Core Foundation: whether a mode is empty is asked before a run and after each pass, never \
    before the sleep, and nobody is woken by a removal.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "in a run of 10 s another thread takes out a port, a source and a timer, and nothing else happens",
      run(bench) { rig, items in rig.time.at(.seconds(2)) { onNewThread { items.leave(rig.loop) } } },
      requires: "timedOut, after 10 s")
    outcome.observe(
      "the same, and somebody wakes the loop at 5 s",
      run(bench) { rig, items in
        rig.time.at(.seconds(2)) { onNewThread { items.leave(rig.loop) } }
        rig.time.at(.seconds(5)) { rig.loop.wakeUp() }
      }, requires: "finished, after 5 s")
    outcome.observe(
      "the same, and there is a source that somebody else has added",
      run(bench) { rig, items in
        rig.keepAlive()
        rig.time.at(.seconds(2)) { onNewThread { items.leave(rig.loop) } }
        rig.time.at(.seconds(5)) { rig.loop.wakeUp() }
      }, requires: "timedOut, after 10 s")
    outcome.observe(
      "a block takes the items out, on the loop's own thread",
      run(bench) { rig, items in rig.time.at(.seconds(2)) { rig.loop.perform { items.leave(rig.loop) } } },
      requires: "finished, after 2 s")
    outcome.observe(
      "another thread takes the items out, and at once adds a timer that is due at 8 s",
      run(bench) { rig, items in
        let timer = Timer(deadline: rig.now.advanced(by: .seconds(8))) { _ in rig.note("the new timer fires") }
        rig.time.at(.seconds(2)) {
          onNewThread {
            items.leave(rig.loop)
            rig.loop.add(timer, forMode: .default)
          }
        }
      }, requires: "finished, after 8 s")
    outcome.observe(
      "another thread takes the items out and stops the run",
      run(bench) { rig, items in
        rig.time.at(.seconds(2)) {
          onNewThread {
            items.leave(rig.loop)
            rig.loop.stop()
          }
        }
      }, requires: "stopped, after 2 s")
    return outcome
  }

  /// Returns how a run of ten seconds ends that three items keep alive.
  private func run(_ bench: Bench, _ prepare: @escaping @Sendable (Rig, Items) -> Void) -> String {
    bench.onLoop { rig in
      let items = Items()
      items.enter(rig.loop)
      prepare(rig, items)
      let result = rig.loop.run(mode: .default, for: .seconds(10))
      rig.note("\(result)")
      return "\(result), after \(rig.seconds) s"
    }
  }
}

/// The items that keep the run alive.
private struct Items: Sendable {
  private let port = Port()
  private let source = RunLoop.Source {}
  private let timer = Timer(timeInterval: 1_000_000, repeats: true) { _ in }

  func enter(_ loop: RunLoop) {
    loop.add(port, forMode: .default)
    loop.add(source, forMode: .default)
    loop.add(timer, forMode: .default)
  }

  /// Removes the items, each in a different way.
  func leave(_ loop: RunLoop) {
    loop.remove(port, forMode: .default)
    source.invalidate()
    timer.invalidate()
  }
}

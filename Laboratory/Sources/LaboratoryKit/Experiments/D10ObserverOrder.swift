// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// D10: the activities that observers see, their order, and their removal at any time.
struct ObserverOrder: Experiment {
  let id = "D10"
  let title = "Observers: six stages, in order"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    Observers are told of six stages: entry (1 << 0), beforeTimers (1 << 1), beforeSources (1 << 2), beforeWaiting (1 << 5), \
    afterWaiting (1 << 6) and exit (1 << 7). Those with a smaller order are called first. There is a function to remove them.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R83, R85 and R88 of Core Foundation: by order, for the stages asked for, and removing one at any time is \
    safe.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "an observer of all stages, in a run of one pass", stages(bench),
      requires: "entry=1 beforeTimers=2 beforeSources=4 beforeWaiting=32 afterWaiting=64 exit=128")
    outcome.observe(
      "observers of the largest, the smallest and twice the same order, added in this order, are called", order(bench),
      requires: "smallest one other largest")
    outcome.observe(
      """
      the first of four removes itself, the second removes the third and invalidates the fourth; called in two passes
      """,
      removal(bench), requires: "first second third | second |")
    return outcome
  }

  private func stages(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let stages = Record()
      rig.observe(.all) { _, activity in
        rig.note("activity = \(activity.rawValue) // \(activity.name)")
        stages.write("\(activity.name)=\(activity.rawValue)")
      }
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(1))
      return stages.text
    }
  }

  private func order(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let calls = Record()
      let orders = [("largest", 2_147_483_647), ("smallest", -2_147_483_647), ("one", 0), ("other", 0)]
      for (name, order) in orders {
        rig.observe(.entry, order: order) { observer, _ in
          rig.note("entry, order = \(observer.order)")
          calls.write(name)
        }
      }
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(1))
      return calls.text
    }
  }

  private func removal(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let loop = rig.loop
      let calls = Record()
      let third = RunLoop.Observer(activities: .beforeTimers, order: 3) { _, _ in calls.write("third") }
      let fourth = RunLoop.Observer(activities: .beforeTimers, order: 4) { _, _ in calls.write("fourth") }
      rig.observe(.beforeTimers, order: 1) { observer, _ in
        calls.write("first")
        loop.remove(observer, forMode: .default)
      }
      rig.observe(.beforeTimers, order: 2) { _, _ in
        calls.write("second")
        loop.remove(third, forMode: .default)
        fourth.invalidate()
      }
      loop.add(third, forMode: .default)
      loop.add(fourth, forMode: .default)
      rig.observe(.beforeSources) { _, _ in calls.write("|") }
      rig.keepAlive()
      rig.time.at(.seconds(1)) { loop.wakeUp() }
      loop.run(mode: .default, for: .seconds(2))
      return calls.text
    }
  }
}

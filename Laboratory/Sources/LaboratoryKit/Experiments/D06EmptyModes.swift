// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D6: what keeps a loop alive.
struct EmptyModes: Experiment {
  let id = "D6"
  let title = "What keeps a mode alive"
  let articles: [Article] = [.qiu, .xilankong, .ren]
  let claim = """
    A mode without items is not entered. Qiu quotes Apple: sources and timers keep a loop alive. Xilankong says that a \
    mode with observers alone is not entered either, but that code, and Ren, count observers among what keeps it.
    """
  let verdict = Verdict.corrected(
    """
    Sources, ports, timers and waiting blocks keep a mode alive; an observer does not. A mode that has only observers is \
    finished at once, and they are not even told.
    """)
  let evidence = """
    R24 and R25 of Core Foundation: sources, timers and blocks are asked for, observers are not. R28a: a mode \
    that held only a block runs it and waits.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "a run of 10 s with nothing in the mode", run(bench, withObserver: false) { _ in },
      requires: "finished, after 0 s, observers called: no")
    outcome.observe(
      "with an observer", run(bench) { _ in }, requires: "finished, after 0 s, observers called: no")
    outcome.observe(
      "with an observer and a source", run(bench) { rig in rig.keepAlive() },
      requires: "timedOut, after 10 s, observers called: yes")
    outcome.observe(
      "with an observer and a port", run(bench) { rig in rig.loop.add(Port(), forMode: .default) },
      requires: "timedOut, after 10 s, observers called: yes")
    outcome.observe(
      "with an observer and a timer that fires once, after 2 s",
      run(bench) { rig in rig.loop.add(Timer(timeInterval: 2, repeats: false) { _ in }, forMode: .default) },
      requires: "finished, after 2 s, observers called: yes")
    outcome.observe(
      "with an observer and a block, which runs at once", run(bench) { rig in rig.loop.perform {} },
      requires: "timedOut, after 10 s, observers called: yes")
    outcome.observe(
      "with an observer and a block that stops the run", run(bench) { rig in rig.loop.perform { rig.loop.stop() } },
      requires: "stopped, after 0 s, observers called: yes")
    return outcome
  }

  private func run(
    _ bench: Bench, withObserver: Bool = true, _ prepare: @escaping @Sendable (Rig) -> Void
  ) -> String {
    bench.onLoop { rig in
      let calls = Record()
      if withObserver { rig.observe(.all) { _, activity in calls.write(activity.name) } }
      prepare(rig)
      let result = rig.loop.run(mode: .default, for: .seconds(10))
      rig.note("\(result); the observer's call-outs: \(calls.text)")
      return "\(result), after \(rig.seconds) s, observers called: \(calls.count > 0 ? "yes" : "no")"
    }
  }
}

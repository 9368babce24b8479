// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D5: what happens when an item is added again.
struct DuplicateItems: Experiment {
  let id = "D5"
  let title = "An item that is added twice"
  let articles: [Article] = [.xilankong, .ren]
  let claim = "An item may be in several modes. Added to the same mode again, it has no further effect."
  let verdict = Verdict.confirmed
  let evidence = """
    R71, R87 and R99b of Core Foundation: an item may be in many modes, in each of them once.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      let calls = Record()
      let observer = RunLoop.Observer(activities: .entry) { _, _ in calls.write("observer") }
      let source = RunLoop.Source { calls.write("source") }
      let timer = Timer(timeInterval: 1, repeats: true) { _ in calls.write("timer") }
      for mode in [RunLoop.Mode.default, .default, .tracking] {
        loop.add(observer, forMode: mode)
        loop.add(source, forMode: mode)
        loop.add(timer, forMode: mode)
      }

      func run(_ mode: RunLoop.Mode) -> String {
        source.signal()
        loop.run(mode: mode, for: .seconds(1))
        rig.note("call-outs in \(mode): \(calls.text)")
        return calls.take()
      }
      func contains(_ holds: (RunLoop.Mode) -> Bool) -> String {
        [.default, .tracking, .initialization].map { holds($0) ? "yes" : "no" }.joined(separator: " ")
      }

      var outcome = Outcome()
      outcome.observe(
        "an observer, a source and a timer, added twice to the default and once to the tracking mode; a run in default",
        run(.default), requires: "observer source timer")
      outcome.observe("a run in tracking", run(.tracking), requires: "observer source timer")
      outcome.observe(
        "the default, tracking and initialization modes contain the observer",
        contains { loop.contains(observer, forMode: $0) }, requires: "yes yes no")
      outcome.observe(
        "the source", contains { loop.contains(source, forMode: $0) }, requires: "yes yes no")
      outcome.observe("the timer", contains { loop.contains(timer, forMode: $0) }, requires: "yes yes no")
      loop.remove(observer, forMode: .default)
      outcome.observe(
        "the observer, once removed from default", contains { loop.contains(observer, forMode: $0) },
        requires: "no yes no")
      outcome.observe("another run in default", run(.default), requires: "source timer")
      return outcome
    }
  }
}

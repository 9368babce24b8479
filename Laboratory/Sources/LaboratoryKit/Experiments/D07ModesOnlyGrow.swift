// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D7: a mode is created with its first item, and is never removed.
struct ModesOnlyGrow: Experiment {
  let id = "D7"
  let title = "Modes only grow"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    The loop makes a mode when it is given a name that it does not know. Modes are only added, never removed.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R22 and R23 of Core Foundation: adding makes a mode, running does not, and none is removed.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      func modes() -> String {
        rig.note("modes = { \(names(of: loop.modes)) }")
        return names(of: loop.modes)
      }

      var outcome = Outcome()
      outcome.observe("the modes of a new loop", modes(), requires: "kCFRunLoopDefaultMode")
      let result = loop.run(mode: "Unknown", for: .seconds(1))
      outcome.observe(
        "after a run in an unknown mode", "\(result), \(modes())", requires: "finished, kCFRunLoopDefaultMode")

      let source = rig.keepAlive("ForSource")
      let timer = Timer(timeInterval: 1, repeats: true) { _ in }
      loop.add(timer, forMode: "ForTimer")
      let observer = rig.observe(.all, mode: "ForObserver") { _, _ in }
      let all = "ForObserver ForSource ForTimer kCFRunLoopDefaultMode"
      outcome.observe("after adding a source, a timer and an observer to modes of their own", modes(), requires: all)

      loop.remove(source, forMode: "ForSource")
      timer.invalidate()
      loop.remove(observer, forMode: "ForObserver")
      outcome.observe("after taking all three out again", modes(), requires: all)
      let rerun = loop.run(mode: "ForSource", for: .seconds(1))
      outcome.observe("a run in an emptied mode", "\(rerun)", requires: "finished")
      return outcome
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D3: a run serves one mode; items of other modes wait.
struct OneModeAtATime: Experiment {
  let id = "D3"
  let title = "One mode at a time"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A run is in one mode, the current mode. To change it, the loop has to be left and entered again, so that items of \
    different modes do not disturb each other.
    """
  let verdict = Verdict.corrected(
    """
    A run keeps its mode and serves no other, as claimed. But the loop need not be left: a call-out may run it again in \
    another mode, nested in the run that called out, which goes on in its own mode afterwards.
    """)
  let evidence = """
    R31 and R108 of Core Foundation: the current mode is that of the innermost run, and runs nest in any modes.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      let ticks = Record()
      let timer = Timer(timeInterval: 1, repeats: true) { _ in
        rig.note("the timer fires in \(loop.currentMode?.rawValue ?? "no mode")")
        ticks.write("\(rig.seconds)")
      }
      loop.add(timer, forMode: .default)
      rig.keepAlive(.tracking)

      var outcome = Outcome()
      loop.run(mode: .default, for: .seconds(3))
      outcome.observe(
        "a timer of 1 s in the default mode, which runs until 3 s, fires at these seconds", ticks.take(),
        requires: "1 2 3")
      loop.run(mode: .tracking, for: .seconds(3))
      outcome.observe("then the tracking mode runs until 6 s", ticks.take(), requires: "none")
      loop.run(mode: .default, for: .seconds(3))
      outcome.observe("then the default mode again until 9 s", ticks.take(), requires: "6 7 8 9")

      let modes = Record()
      let writeMode: @Sendable () -> Void = { modes.write(loop.currentMode?.rawValue ?? "none") }
      loop.perform {
        writeMode()
        loop.perform(inModes: [.tracking], block: writeMode)
        loop.run(mode: .tracking, for: .seconds(3))
        writeMode()
        modes.write("with ticks: \(ticks.text)")
      }
      loop.run(mode: .default, for: .seconds(1))
      outcome.observe(
        "the current mode in a block of the default mode, in a run of 3 s nested in it, and after that", modes.text,
        requires: "kCFRunLoopDefaultMode UITrackingRunLoopMode kCFRunLoopDefaultMode with ticks: none")
      return outcome
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D18: the modes with names, and the pseudo-mode.
struct FiveModes: Experiment {
  let id = "D18"
  let title = "Five modes, one of them a placeholder"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    Five modes are registered by default: kCFRunLoopDefaultMode, UITrackingRunLoopMode, UIInitializationRunLoopMode, \
    GSEventReceiveRunLoopMode and kCFRunLoopCommonModes, which is a placeholder and has no effect of its own.
    """
  let verdict = Verdict.corrected(
    """
    A loop begins with the default mode alone; the others are made when something is added to them, which an \
    application's framework does. The common one is a placeholder, as claimed: what is added to it goes into the \
    modes that it stands for, and a run in it is finished at once.
    """)
  let evidence = """
    R21 and R22 of Core Foundation: a new loop has the default mode, the others are made by use. R16: the common \
    pseudo-mode is no mode.
    """
  let difference = Difference.numbered(
    ["M11"],
    """
    The name of the common pseudo-mode never becomes that of a mode, however it is spelt, and a run in it is \
    reported once on the standard error.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      let named: [RunLoop.Mode] = [.default, .tracking, .initialization, .eventReceive, .common]
      var outcome = Outcome()
      outcome.observe(
        "the five names", names(of: named),
        requires: """
          GSEventReceiveRunLoopMode UIInitializationRunLoopMode UITrackingRunLoopMode kCFRunLoopCommonModes \
          kCFRunLoopDefaultMode
          """)
      outcome.observe("the modes of a new loop", names(of: loop.modes), requires: "kCFRunLoopDefaultMode")

      for mode in named { rig.keepAlive(mode) }
      rig.note("modes = { \(names(of: loop.modes)) }")
      outcome.observe(
        "its modes after a source was added under each name", names(of: loop.modes),
        requires: """
          GSEventReceiveRunLoopMode UIInitializationRunLoopMode UITrackingRunLoopMode kCFRunLoopDefaultMode
          """)
      let common = rig.keepAlive(.common)
      outcome.observe(
        "a source that was added under the common name is in the default mode",
        loop.contains(common, forMode: .default) ? "yes" : "no", requires: "yes")

      let results = named.map { mode in
        let start = rig.seconds
        let result = loop.run(mode: mode, for: .seconds(5))
        rig.note("a run in \(mode): \(result)")
        return "\(result) after \(rig.seconds - start) s"
      }
      outcome.observe(
        "runs of 5 s in default, tracking, initialization, event receive and common", results.joined(separator: ", "),
        requires: "timedOut after 5 s, timedOut after 5 s, timedOut after 5 s, timedOut after 5 s, finished after 0 s")
      return outcome
    }
  }
}

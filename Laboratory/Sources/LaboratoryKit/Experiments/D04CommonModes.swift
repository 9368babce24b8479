// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D4: the timer that pauses while a view scrolls, and the common modes as the remedy.
struct CommonModes: Experiment {
  let id = "D4"
  let title = "A timer in the common modes"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A timer of the default mode gets no call-outs while the user scrolls, when the loop runs in the tracking mode. Added to \
    both modes, or to the common modes, it fires in both.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R101 and R102 of Core Foundation: a common item enters every common mode, also one that comes later.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      try? loop.addCommonMode(.tracking)
      let onlyDefault = addTimer(rig, [.default])
      let both = addTimer(rig, [.default, .tracking])
      let common = addTimer(rig, [.common])
      // A mode that becomes common later gets the common items too.
      let later = RunLoop.Mode("LaterMode")
      try? loop.addCommonMode(later)

      for mode in [.default, .tracking, later] {
        rig.keepAlive(mode)
        rig.note("the loop runs in \(mode)")
        loop.run(mode: mode, for: .seconds(5))
      }

      func counts(_ record: Record) -> String {
        let fires = record.lines
        return [.default, .tracking, later].map { mode in "\(fires.count { $0 == mode.rawValue })" }
          .joined(separator: " ")
      }
      var outcome = Outcome()
      let runs = "in 5 s each of the default, the tracking and a later common mode"
      outcome.observe(
        "fires of a timer of 1 s, \(runs), if it is in the default mode", counts(onlyDefault), requires: "5 0 0")
      outcome.observe("if it is in the default and the tracking mode", counts(both), requires: "5 5 0")
      outcome.observe("if it is in the common modes", counts(common), requires: "5 5 5")
      return outcome
    }
  }

  /// Adds a timer of one second that records the mode in which it fires.
  private func addTimer(_ rig: Rig, _ modes: [RunLoop.Mode]) -> Record {
    let record = Record()
    let loop = rig.loop
    let place = modes.map(\.rawValue).joined(separator: " and ")
    let timer = Timer(timeInterval: 1, repeats: true) { _ in
      rig.note("the timer in \(place) fires")
      record.write(loop.currentMode?.rawValue ?? "none")
    }
    for mode in modes { loop.add(timer, forMode: mode) }
    return record
  }
}

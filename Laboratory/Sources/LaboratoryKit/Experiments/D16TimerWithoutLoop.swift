// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// D16: a timer needs a loop.
struct TimerWithoutLoop: Experiment {
  let id = "D16"
  let title = "A timer that is not added"
  let articles: [Article] = [.xilankong]
  let claim = "A timer made with timerWith… does not run unless it is added to a loop."
  let verdict = Verdict.confirmed
  let evidence = """
    R99g of Core Foundation: a loop knows the timers only that were added to it.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onLoop { rig in
      let loop = rig.loop
      let fires = Record()
      let fire: @Sendable (Timer) -> Void = { _ in
        rig.note("wantTodo")
        fires.write("fire")
      }
      rig.keepAlive()

      /// Returns the fires in a run of ten and a half seconds.
      func run() -> String {
        loop.run(mode: .default, for: .milliseconds(10_500))
        defer { _ = fires.take() }
        return "\(fires.count) fires"
      }

      var outcome = Outcome()
      rig.note("Timer(timeInterval: 1, repeats: true)")
      let timer = Timer(timeInterval: 1, repeats: true, block: fire)
      outcome.observe("a timer of 1 s, not added, in a run of 10.5 s", run(), requires: "0 fires")
      timer.deadline = rig.now.advanced(by: .seconds(1))
      rig.note("loop.add(timer, forMode: .default)")
      loop.add(timer, forMode: .default)
      outcome.observe("once it is added", run(), requires: "10 fires")
      loop.remove(timer, forMode: .default)
      outcome.observe("once it is removed again", run(), requires: "0 fires")
      rig.note("Timer.scheduledTimer(withTimeInterval: 1, repeats: true)")
      let scheduled = Timer.scheduledTimer(withTimeInterval: 1, repeats: true, block: fire)
      outcome.observe("one made by scheduledTimer, which adds it", run(), requires: "10 fires")
      loop.remove(scheduled, forMode: .default)
      return outcome
    }
  }
}

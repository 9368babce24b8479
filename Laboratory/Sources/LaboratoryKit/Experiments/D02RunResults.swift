// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// D2: the four ways in which a run ends.
struct RunResults: Experiment {
  let id = "D2"
  let title = "The four results of a run"
  let articles: [Article] = [.xiong]
  let claim = """
    A run ends with finished (1) when all sources have been removed, stopped (2) when somebody stops it, timedOut (3) when \
    its time is over, and handledSource (4) when it was to return after a source.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R6 of Core Foundation: the four results and their order. R28: it is after a pass that the run sees that the \
    mode is empty.
    """

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "the last source is removed after 1 s, by a block of the loop",
      result(bench) { rig, source in
        rig.time.at(.seconds(1)) { rig.loop.perform { rig.loop.remove(source, forMode: .default) } }
      },
      requires: "finished 1, after 1 s")
    outcome.observe(
      "stop() after 2 s",
      result(bench) { rig, _ in rig.time.at(.seconds(2)) { rig.loop.stop() } },
      requires: "stopped 2, after 2 s")
    outcome.observe("nothing happens", result(bench) { _, _ in }, requires: "timedOut 3, after 10 s")
    outcome.observe(
      "a source is signalled after 4 s",
      result(bench, returnAfterSourceHandled: true) { rig, source in signal(source, rig) },
      requires: "handledSource 4, after 4 s")
    outcome.observe(
      "the same, in a run that is not to return after a source",
      result(bench) { rig, source in signal(source, rig) }, requires: "timedOut 3, after 10 s")
    return outcome
  }

  private func signal(_ source: RunLoop.Source, _ rig: Rig) {
    rig.time.at(.seconds(4)) {
      source.signal()
      rig.loop.wakeUp()
    }
  }

  /// Returns the result of a run of at most ten seconds, with its raw value and the time of its end.
  private func result(
    _ bench: Bench, returnAfterSourceHandled: Bool = false,
    _ prepare: @escaping @Sendable (Rig, RunLoop.Source) -> Void
  ) -> String {
    bench.onLoop { rig in
      prepare(rig, rig.keepAlive())
      let result = rig.loop.run(
        mode: .default, for: .seconds(10), returnAfterSourceHandled: returnAfterSourceHandled)
      rig.note("kCFRunLoopRun… = \(result.rawValue) // \(result)")
      return "\(result) \(result.rawValue), after \(rig.seconds) s"
    }
  }
}

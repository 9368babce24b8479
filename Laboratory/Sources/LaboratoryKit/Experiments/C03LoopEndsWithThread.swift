// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// C3: the end of a loop.
struct LoopEndsWithThread: Experiment {
  let id = "C3"
  let title = "The loop ends with its thread"
  let articles: [Article] = [.xiong, .yongzhen, .xilankong, .ren]
  let claim = "A loop is destroyed when its thread ends, by a call-back that is registered when the loop is made."
  let verdict = Verdict.confirmed
  let evidence = """
    R115 of Core Foundation: a destructor of the thread lets its loop go, and its sources are cancelled.
    """
  let difference = Difference.numbered(
    ["M14"],
    """
    Work that has not run is released then, and counted as dropped.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let weakLoop = Weak<RunLoop>()
      let cancelled = Record()
      let mayEnd = bench.flag()
      let hasLoop = bench.flag()
      let source = RunLoop.Source(cancel: { _, mode in cancelled.write(mode.rawValue) }) {}
      let thread = WatchedThread(on: bench) { watch in
        weakLoop.object = RunLoop.current
        RunLoop.current.add(source, forMode: .default)
        RunLoop.current.add(source, forMode: .tracking)
        watch.events.write("loop-made")
        hasLoop.set()
        mayEnd.wait()
      }
      thread.start()
      hasLoop.wait()
      outcome.observe("the loop, which only its thread holds", weakLoop.state, requires: "kept")
      outcome.observe("call-outs that tell the source of its end", cancelled.text, requires: "none")
      let work = Weak<Tally>()
      outcome.observe("work that is performed on the thread", post(thread, work), requires: "accepted, kept")

      mayEnd.set()
      _ = thread.finished()
      outcome.observe("the loop, after the end of its thread", weakLoop.state, requires: "released")
      outcome.observe(
        "call-outs that have told the source", cancelled.lines.sorted().joined(separator: " "),
        requires: "UITrackingRunLoopMode kCFRunLoopDefaultMode")
      outcome.observe("the work, which has not run", work.state, requires: "released")
      return outcome
    }
  }

  /// Posts work to a thread that does not run its loop, and describes whether it is accepted and its references
  /// released.
  private func post(_ thread: WatchedThread, _ work: Weak<Tally>) -> String {
    let held = Tally()
    work.object = held
    let answer = thread.watch.bench.answer { try thread.perform { held.add() } }
    return "\(answer), \(work.state)"
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A3: an empty loop does not keep a thread alive.
struct EmptyRun: Experiment {
  let id = "A3"
  let title = "A run of a loop with nothing in it"
  let articles: [Article] = [.xiong, .qiu]
  let claim = """
    Running a loop to which no source was added returns at once. The line after it is executed, and the thread finishes.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R24 of Core Foundation: a run of an empty mode is finished at once. R122 of Foundation: run() returns then.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "a thread that calls run()", life(bench) { $0.run() },
        requires: "doInitThread the-line-after-run; isExecuting = 0, isFinished = 1")
      outcome.observe(
        "a thread that calls runUntilStopped(), which is CFRunLoopRun", life(bench) { $0.runUntilStopped() },
        requires: "doInitThread the-line-after-run; isExecuting = 0, isFinished = 1")
      return outcome
    }
  }

  private func life(_ bench: Bench, run: @escaping @Sendable (RunLoop) -> Void) -> String {
    let thread = WatchedThread(on: bench) { watch in
      watch.events.write("doInitThread")
      run(watch.loop)
      if !watch.isCut { watch.events.write("the-line-after-run") }
    }
    thread.start()
    defer { thread.end() }
    let flags = thread.finished()
    return "\(thread.watch.events.text); \(flags)"
  }
}

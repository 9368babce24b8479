// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A6: a thread whose loop runs retains its own object.
struct RunningThreadKept: Experiment {
  let id = "A6"
  let title = "A local thread whose loop runs"
  let articles: [Article] = [.xiong, .yongzhen]
  let claim = "A thread that runs its loop is not released, also if its object was in a local variable only."
  let verdict = Verdict.confirmed
  let evidence = """
    Foundation: the running thread holds its object.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let watch = viewDidLoad(bench)
      watch.settle()
      outcome.observe("what has happened when the loop sleeps", watch.events.text, requires: "doInitThread")
      watch.cut()
      watch.waitForRelease()
      outcome.observe(
        "and after its end, to which the laboratory has brought it", watch.events.text,
        requires: "doInitThread end-of-run dealloc")
      return outcome
    }
  }

  private func viewDidLoad(_ bench: Bench) -> Watch {
    let thread = WatchedThread(on: bench) { watch in
      watch.events.write("doInitThread")
      watch.loop.add(watch.port(), forMode: .default)
      watch.loop.run()
      watch.events.write("end-of-run")
    }
    thread.start()
    return thread.watch
  }
}

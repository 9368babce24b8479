// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A1: a thread to which there is no reference.
struct OneShotThread: Experiment {
  let id = "A1"
  let title = "A one-shot thread in a local variable"
  let articles: [Article] = [.xiong, .yongzhen]
  let claim = """
    A thread that is made in the usual way runs its task once. When the task is done, the thread's object is released at \
    once, and nobody can find it any more.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    Foundation: the running thread holds its object, and lets it go at its end; the log of the article shows the \
    same.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let watch = touchesBegan(bench)
      let isReleased = watch.waitForRelease()
      outcome.observe("what happened, in order", watch.events.text, requires: "doWork dealloc")
      outcome.observe(
        "the object, which nobody held but the thread", isReleased ? "released" : "kept", requires: "released")
      return outcome
    }
  }

  /// Starts a thread as Xiong does when the screen is touched.
  private func touchesBegan(_ bench: Bench) -> Watch {
    let thread = WatchedThread(on: bench) { watch in watch.events.write("doWork") }
    thread.start()
    return thread.watch
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A2: a reference to a thread does not prolong its life.
struct HeldOneShotThread: Experiment {
  let id = "A2"
  let title = "A one-shot thread that is held"
  let articles: [Article] = [.xiong]
  let claim = """
    Holding a one-shot thread keeps its object, but the thread is finished and answers nothing any more: what is performed on \
    it does not run, and the program crashes if that is waited for.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    The code of the article, which says of the wait that it crashes. Foundation: a thread that has ended runs \
    nothing.
    """
  let difference = Difference.numbered(
    ["M14", "M21"],
    """
    Whatever is performed on the thread is rejected at once with an error that says why, and so is a wait for \
    it. Nothing crashes.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let thread = WatchedThread(on: bench) { watch in watch.events.write("doInitThread") }
      thread.start()
      let doWork: @Sendable () -> Void = { thread.watch.events.write("doWork") }

      outcome.observe(
        "the held thread, once it has run its task", thread.finished(), requires: "isExecuting = 0, isFinished = 1")
      outcome.observe(
        "doWork is performed on it", bench.answer { try thread.perform(doWork) },
        requires: "refused, as thread \"MyThread\" has finished")
      outcome.observe(
        "doWork is performed on it and waited for",
        bench.answer { try thread.performAndWait(timeout: bench.meeting.patience, doWork) },
        requires: "refused, as thread \"MyThread\" has finished")
      outcome.observe(
        "the thread is started again", bench.answer { try thread.tryStart() },
        requires: "refused, as thread \"MyThread\" has already been started")
      outcome.observe("what has run", thread.watch.events.text, requires: "doInitThread")
      return outcome
    }
  }
}

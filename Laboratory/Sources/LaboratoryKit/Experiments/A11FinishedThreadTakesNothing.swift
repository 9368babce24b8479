// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A11: the state of a thread after an empty run.
struct FinishedThreadTakesNothing: Experiment {
  let id = "A11"
  let title = "Tasks for a thread after an empty run"
  let articles: [Article] = [.xiong]
  let claim = """
    The author sees that after an empty run the thread is finished, and is surprised that it can take tasks all the same: once \
    its loop was run, a thread goes on taking tasks.
    """
  let verdict = Verdict.refuted(
    """
    Being finished is the end. That nothing complained, and that the lines before and after the call were \
    printed, made it look as if the tasks were taken; doWork never ran.
    """)
  let evidence = """
    The log of the article, in which doWork never prints. R17 of Core Foundation: the loop of a thread that has \
    ended runs no more.
    """
  let difference = Difference.numbered(
    ["M14", "M21"],
    """
    Each task is rejected with an error, where Apple's says nothing.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let thread = WatchedThread(on: bench) { watch in
        watch.events.write("doInitThread")
        watch.loop.run()
      }
      thread.start()
      outcome.observe("after the empty run", thread.finished(), requires: "isExecuting = 0, isFinished = 1")
      for number in 1...3 {
        thread.watch.say("pre performSelector")
        let answer = bench.answer { try thread.perform { thread.watch.events.write("doWork") } }
        thread.watch.say("after performSelector: \(answer)")
        outcome.observe("task \(number)", answer, requires: "refused, as thread \"MyThread\" has finished")
      }
      thread.end()
      outcome.observe("what has run", thread.watch.events.text, requires: "doInitThread")
      return outcome
    }
  }
}

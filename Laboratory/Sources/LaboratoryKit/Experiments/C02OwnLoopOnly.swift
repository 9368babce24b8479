// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// C2: the loops that are accessible from each thread.
struct OwnLoopOnly: Experiment {
  let id = "C2"
  let title = "The thread's own loop, and the main loop"
  let articles: [Article] = [.xiong, .xilankong, .ren]
  let claim = "A loop can only be had on its own thread, with the exception of the main loop, which can be had on any."
  let verdict = Verdict.confirmed
  let evidence = """
    R113 of Core Foundation: there are functions for the calling thread's loop and for the main loop, and no \
    other.
    """
  let difference = Difference.addition(
    """
    A thread's object also returns its loop to others, who need it to leave work there. Only the thread itself \
    can run it.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let main = RunLoop.main
      let loops = Found<[RunLoop]>([])
      let thread = WatchedThread(on: bench) { watch in
        loops.value = [watch.loop, RunLoop.main]
        watch.loop.add(watch.port(), forMode: .default)
        watch.loop.run()
      }
      thread.start()
      thread.watch.settle()
      let (own, workersMain) = (loops.value.first, loops.value.last)
      func yes(_ isTrue: Bool) -> String {
        thread.watch.say(isTrue ? "equal" : "different")
        return isTrue ? "yes" : "no"
      }
      outcome.observe("the main loop, as a worker has it, is the main loop", yes(workersMain == main), requires: "yes")
      outcome.observe("the worker's own loop is the main loop", yes(own == main), requires: "no")
      outcome.observe("it is the current loop of another thread", yes(own == RunLoop.current), requires: "no")
      outcome.observe(
        "it is the loop that the worker's object gives to another thread", yes(own == thread.runLoop), requires: "yes")
      thread.end()
      return outcome
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A7: a thread that does not return from `run()` still performs work.
struct OneThreadOnly: Experiment {
  let id = "A7"
  let title = "The thread on which a loop runs"
  let articles: [Article] = [.xiong]
  let claim = """
    run() holds up the lines after it, but not the thread, which goes on as usual. The author guesses that the loop runs in \
    another thread of the system, or in another process.
    """
  let verdict = Verdict.refuted(
    """
    There is one thread. It is inside run() all the time: it sleeps there, and a task is a function that run() \
    calls. In the stack of a task, run() stands below it, and below that the thread's own body. A task is a \
    source: it ends the inner run, and run() begins the next.
    """)
  let evidence = """
    R18 of Core Foundation: only its own thread runs a loop; every call-out is a call of the run, in its stack.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let threads = ThreadCount()
      let thread = WatchedThread(on: bench) { watch in
        threads.note()
        watch.events.write("body")
        let observer = RunLoop.Observer(activities: .entry) { _, _ in
          threads.note()
          watch.events.write("run")
        }
        watch.loop.add(observer, forMode: .default)
        watch.loop.add(watch.port(), forMode: .default)
        watch.loop.run()
      }
      thread.start()
      let watch = thread.watch
      watch.settle()
      let functions = Record()
      thread.performSelector {
        threads.note()
        watch.events.write("task")
        for function in stack() { functions.write(function) }
      }
      watch.settle()

      outcome.observe("what has happened, in order", watch.events.text, requires: "body run task run")
      outcome.observe("the kernel's numbers of the threads that did it", "\(threads.count)", requires: "1")
      let isBelow = functions.lines.contains { $0.contains("RunLoop.run(") }
      outcome.observe("run() is in the stack of the task", isBelow ? "yes" : "no", requires: "yes")
      thread.end()
      return outcome
    }
  }
}

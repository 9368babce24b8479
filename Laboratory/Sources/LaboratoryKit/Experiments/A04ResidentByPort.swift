// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A4: the thread of AFNetworking 2.x.
struct ResidentByPort: Experiment {
  let id = "A4"
  let title = "A thread that a port keeps alive"
  let articles: [Article] = [.xiong, .qiu, .yongzhen, .xilankong, .ren]
  let claim = """
    With a port added to its loop before, run() does not return. The thread stays executing and takes tasks for ever, as \
    AFNetworking's networkRequestThread does.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R25 and R26 of Core Foundation: a port keeps its mode alive, also if nobody sends to it. R122 of Foundation: \
    run() begins the next run.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let thread = networkRequestThread(bench)
      let watch = thread.watch
      outcome.observe("the thread's loop, with no task", watch.settle().rawValue, requires: "asleep")

      let threads = Record()
      for number in 1...3 {
        thread.performSelector {
          watch.events.write("task-\(number)")
          threads.write(watch.thread)
        }
        watch.settle()
      }
      outcome.observe(
        "what has happened after three tasks, the line after run() not being reached", watch.events.text,
        requires: "networkRequestThreadEntryPoint task-1 task-2 task-3")
      outcome.observe(
        "where the tasks ran", threads.lines.joined(separator: ", "),
        requires: "its own thread, its own thread, its own thread")
      outcome.observe("the thread", thread.flags, requires: "isExecuting = 1, isFinished = 0")
      thread.end()
      return outcome
    }
  }

  private func networkRequestThread(_ bench: Bench) -> WatchedThread {
    let thread = WatchedThread(on: bench, name: "AFNetworking") { watch in
      watch.events.write("networkRequestThreadEntryPoint")
      let runLoop = watch.loop
      runLoop.add(watch.port(), forMode: .default)
      runLoop.run()
      watch.events.write("the-line-after-run")
    }
    thread.start()
    return thread
  }
}

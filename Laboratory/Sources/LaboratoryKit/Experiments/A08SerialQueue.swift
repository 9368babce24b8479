// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import RunLoopThreads

/// A8: a serial queue performs work as well, and is not a thread.
struct SerialQueue: Experiment {
  let id = "A8"
  let title = "A serial queue instead of a thread"
  let articles: [Article] = [.xiong]
  let claim = """
    A serial dispatch queue that is held as a singleton goes on answering, on a thread that is executing each time, just as a \
    thread with a source in its loop does. That is far more convenient.
    """
  let verdict = Verdict.corrected(
    """
    The queue goes on answering, in order. But it is no thread: it borrows whichever is there, and a block that is waited for \
    runs on the caller's. What has to stay on one thread needs a thread.
    """)
  let evidence = """
    libdispatch, which is the same there and here: a queue has no thread of its own, and sync runs its block on \
    the caller's.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let ran = Record()
      let queue = DispatchQueue(label: "myQueue")
      for number in 1...10 {
        queue.async { ran.write("\(number)") }
        queue.sync {}
      }
      bench.log.write("myQueue: \(ran.text)")
      outcome.observe("ten blocks of the queue, in order", ran.take(), requires: "1 2 3 4 5 6 7 8 9 10")

      let caller = callingThread
      let isCallers = queue.sync { callingThread == caller }
      outcome.observe(
        "a block of the queue that is waited for runs on", isCallers ? "the caller's thread" : "another thread",
        requires: "the caller's thread")

      let thread = WatchedThread(on: bench) { watch in
        watch.loop.add(watch.port(), forMode: .default)
        watch.loop.run()
      }
      thread.start()
      let threads = Record()
      for number in 1...10 {
        thread.performSelector {
          ran.write("\(number)")
          threads.write(thread.watch.thread)
        }
        thread.watch.settle()
      }
      thread.watch.say(ran.text)
      outcome.observe("ten tasks of a thread, in order", ran.take(), requires: "1 2 3 4 5 6 7 8 9 10")
      let waited = try? thread.performAndWait(timeout: bench.meeting.patience) { thread.watch.thread }
      outcome.observe(
        "the tasks ran on", Set(threads.lines).joined(separator: ", "), requires: "its own thread")
      outcome.observe("a task that is waited for runs on", waited ?? "none", requires: "its own thread")
      thread.end()
      return outcome
    }
  }
}

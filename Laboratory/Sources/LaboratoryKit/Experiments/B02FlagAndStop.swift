// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// B2: how the articles end a thread.
struct FlagAndStop: Experiment {
  let id = "B2"
  let title = "A flag and a stop"
  let articles: [Article] = [.qiu, .yongzhen]
  let claim = """
    A thread that runs its loop in while (!stopped) { [runloop runMode:beforeDate:distantFuture]; } ends when the flag is set \
    and CFRunLoopStop is called, both on that thread.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R35 of Core Foundation: a stop ends the innermost run. R8: so does a source, where the run returns after one; what is \
    performed on the thread is a source and ends the turn by itself, so that the flag alone is enough then.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let stopped = bench.flag()
      let watch = life(bench, stopped, &outcome)
      watch.waitForRelease()
      outcome.observe(
        "all that has happened", watch.events.text, requires: "begin test stopThread end dealloc")
      outcome.observe(
        "the flag is set by a task of the thread, and nobody stops the run",
        end(bench) { thread, stopped in thread.performSelector { stopped.set() } },
        requires: "returned; isExecuting = 0, isFinished = 1")
      outcome.observe(
        "the flag is set by another thread, which then stops the run",
        end(bench) { thread, stopped in
          stopped.set()
          thread.watch.stopLoop()
        }, requires: "returned; isExecuting = 0, isFinished = 1")
      outcome.observe(
        "the flag is set by another thread, and nobody stops the run",
        end(bench) { _, stopped in stopped.set() }, requires: "asleep; isExecuting = 1, isFinished = 0")
      return outcome
    }
  }

  /// Starts and ends the thread, and leaves no reference to it.
  private func life(_ bench: Bench, _ stopped: Flag, _ outcome: inout Outcome) -> Watch {
    let thread = start(bench, stopped)
    let watch = thread.watch
    thread.performSelector { watch.events.write("test") }
    outcome.observe("after a task", watch.settle().rawValue, requires: "asleep")
    thread.performSelectorAndWait {
      watch.events.write("stopThread")
      stopped.set()
      RunLoop.current.stop()
    }
    outcome.observe("after the stop", thread.finished(), requires: "isExecuting = 0, isFinished = 1")
    thread.end()
    return watch
  }

  /// Starts a thread that runs its loop until a flag is set.
  private func start(_ bench: Bench, _ stopped: Flag) -> WatchedThread {
    let thread = WatchedThread(on: bench, name: "MJThread") { watch in
      watch.events.write("begin")
      watch.loop.add(watch.port(), forMode: .default)
      while !stopped.isSet, !watch.isCut {
        watch.loop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true)
      }
      if !watch.isCut { watch.events.write("end") }
    }
    thread.start()
    return thread
  }

  /// Returns the state of a thread after `body` has tried to end it.
  private func end(_ bench: Bench, _ body: (WatchedThread, Flag) -> Void) -> String {
    let stopped = bench.flag()
    let thread = start(bench, stopped)
    thread.watch.settle()
    body(thread, stopped)
    let rest = thread.watch.settle()
    if rest == .returned { _ = thread.finished() }
    defer { thread.end() }
    return "\(rest.rawValue); \(thread.flags)"
  }
}

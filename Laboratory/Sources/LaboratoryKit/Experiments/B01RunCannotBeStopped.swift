// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// B1: the runs that a stop ends, and those that it does not.
struct RunCannotBeStopped: Experiment {
  let id = "B1"
  let title = "A stop and run()"
  let articles: [Article] = [.qiu, .yongzhen]
  let claim = """
    run() cannot be ended: it is while (1) { [runloop runMode:beforeDate:distantFuture]; }. CFRunLoopStop ends the turn that is \
    being made, and the next one begins.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R43 of Core Foundation and Foundation: a stop ends one run, and run() begins the next; R35 and R15: \
    CFRunLoopRun is one run.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let resident = start(bench) { $0.run() }
      outcome.observe("a thread in run()", resident.watch.news(), requires: "begin turn")
      for number in 1...3 {
        resident.watch.stopLoop()
        outcome.observe("stop \(number), by another thread", resident.watch.news(), requires: "turn")
      }
      resident.performSelector { RunLoop.current.stop() }
      outcome.observe("a stop by a task of the thread itself", resident.watch.news(), requires: "turn")
      outcome.observe("the thread", resident.flags, requires: "isExecuting = 1, isFinished = 0")
      resident.end()

      let other = start(bench) { $0.runUntilStopped() }
      outcome.observe(
        "a thread in runUntilStopped(), which is CFRunLoopRun", other.watch.news(), requires: "begin turn")
      other.performSelector { RunLoop.current.stop() }
      outcome.observe("one stop", other.watch.news(), requires: "end")
      outcome.observe("the thread", other.finished(), requires: "isExecuting = 0, isFinished = 1")
      other.end()
      return outcome
    }
  }

  /// Starts a thread that records the beginning of each run of its loop.
  private func start(_ bench: Bench, run: @escaping @Sendable (RunLoop) -> Void) -> WatchedThread {
    let thread = WatchedThread(on: bench, name: "YZThread") { watch in
      watch.events.write("begin")
      let observer = RunLoop.Observer(activities: .entry) { _, _ in watch.events.write("turn") }
      watch.loop.add(observer, forMode: .default)
      watch.loop.add(watch.port(), forMode: .default)
      run(watch.loop)
      if !watch.isCut { watch.events.write("end") }
    }
    thread.start()
    return thread
  }
}

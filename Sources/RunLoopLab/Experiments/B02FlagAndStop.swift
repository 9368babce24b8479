import RunLoopCore
import RunLoopThreads

/// B2: how the documents end a thread.
struct FlagAndStop: Experiment {
  let id = "B2"
  let title = "A flag and a stop"
  let documents = ["001", "002"]
  let claim = """
    A thread that runs its loop in while (!stopped) { [runloop runMode:beforeDate:distantFuture]; } ends when the flag is set \
    and CFRunLoopStop is called, both on that thread.
    """
  let verdict = Verdict.confirmed

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let stopped = bench.flag()
      let watch = life(bench, stopped, &outcome)
      watch.waitForRelease()
      outcome.observe(
        "all that has happened", watch.events.text, requires: "begin test stopThread end dealloc")
      return outcome
    }
  }

  /// The thread's life, after which nobody holds it.
  private func life(_ bench: Bench, _ stopped: Flag, _ outcome: inout Outcome) -> Watch {
    let thread = WatchedThread(on: bench, name: "MJThread") { watch in
      watch.events.write("begin")
      watch.loop.add(Port(), forMode: .default)
      while !stopped.isSet, !watch.isCut {
        watch.loop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true)
      }
      if !watch.isCut { watch.events.write("end") }
    }
    let watch = thread.watch
    thread.start()
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
}

import RunLoopCore
import RunLoopThreads

/// B8: whether a run ends when its items are gone.
struct LastItemGoes: Experiment {
  let id = "B8"
  let title = "A run whose items are all removed"
  let documents = ["001"]
  let claim = """
    Apple: removing all known input sources and timers from a run loop is not a guarantee that it will exit. The system can \
    install and remove sources of its own, which keep it from exiting.
    """
  let verdict = Verdict.corrected(
    """
    What keeps a run alive is an item, whoever has added it; with the last one the run ends, and if it sleeps, it is woken for \
    that. Apple's frameworks add items behind the program's back. Here only the program and what it uses do.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "a port is removed, then a source invalidated, then a timer", ends(bench),
        requires: "asleep, asleep, returned; isExecuting = 0, isFinished = 1")
      outcome.observe(
        "the same, with a source that somebody else has added and at last invalidates", ends(bench, stranger: .init {}),
        requires: "asleep, asleep, asleep, returned; isExecuting = 0, isFinished = 1")
      return outcome
    }
  }

  /// What the thread comes to after each step.
  private func ends(_ bench: Bench, stranger: RunLoop.Source? = nil) -> String {
    let port = Port()
    let source = RunLoop.Source {}
    let timer = Timer(timeInterval: 1_000_000, repeats: true) { _ in }
    let thread = WatchedThread(on: bench) { watch in
      let loop = watch.loop
      loop.add(port, forMode: .default)
      loop.add(source, forMode: .default)
      loop.add(timer, forMode: .default)
      if let stranger { loop.add(stranger, forMode: .default) }
      watch.events.write("run")
      loop.run()
      if !watch.isCut { watch.events.write("end") }
    }
    thread.start()
    let watch = thread.watch
    watch.settle()
    var rests: [String] = []
    thread.runLoop?.remove(port, forMode: .default)
    rests.append(watch.settle().rawValue)
    source.invalidate()
    rests.append(watch.settle().rawValue)
    timer.invalidate()
    rests.append(watch.settle().rawValue)
    if let stranger {
      stranger.invalidate()
      rests.append(watch.settle().rawValue)
    }
    let flags = watch.hasReturned ? thread.finished() : thread.flags
    thread.end()
    return "\(rests.joined(separator: ", ")); \(flags)"
  }
}

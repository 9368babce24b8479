// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// B4: the fate of a thread whose owner is deallocated.
struct OwnerGoes: Experiment {
  let id = "B4"
  let title = "A thread whose owner is released"
  let articles: [Article] = [.qiu, .yongzhen]
  let claim = """
    That the owner is deallocated does not end its thread if that is in run(). A stop in the owner's dealloc that is waited for \
    ends it, if the thread has a loop with a flag in place of run().
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R43 of Core Foundation and Foundation: run() goes on after a stop. Foundation: the running thread holds its \
    object.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "the thread is in run(); the owner's deinit does nothing", life(bench, inRun: true, stops: false),
        requires: "begin owner-deinit; asleep; thread kept")
      outcome.observe(
        "the thread is in run(); the owner's deinit stops it", life(bench, inRun: true, stops: true),
        requires: "begin owner-deinit stopThread; asleep; thread kept")
      outcome.observe(
        "the thread has a flag; the owner's deinit sets it and stops the run", life(bench, inRun: false, stops: true),
        requires: "begin owner-deinit stopThread end dealloc; returned; thread released")
      return outcome
    }
  }

  /// Returns the events, the state the thread settled in, and whether its object is released.
  private func life(_ bench: Bench, inRun: Bool, stops: Bool) -> String {
    let weakThread = Weak<WatchedThread>()
    let watch: Watch
    do {
      let owner = Owner(bench, inRun: inRun, stops: stops)
      weakThread.object = owner.thread
      watch = owner.thread.watch
      watch.settle()
      withExtendedLifetime(owner) {}
    }
    let rest = watch.settle()
    if rest == .returned { watch.waitForRelease() }
    let description = "\(watch.events.text); \(rest.rawValue); thread \(weakThread.state)"
    weakThread.object?.end()
    return description
  }
}

/// An object that owns a thread.
private final class Owner: Sendable {
  let thread: WatchedThread
  private let stopped: Flag
  private let stops: Bool

  init(_ bench: Bench, inRun: Bool, stops: Bool) {
    let stopped = bench.flag()
    thread = WatchedThread(on: bench, name: "XWThread") { watch in
      watch.events.write("begin")
      watch.loop.add(watch.port(), forMode: .default)
      if inRun {
        watch.loop.run()
      } else {
        while !stopped.isSet, !watch.isCut {
          watch.loop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true)
        }
      }
      if !watch.isCut { watch.events.write("end") }
    }
    self.stopped = stopped
    self.stops = stops
    thread.start()
  }

  deinit {
    let events = thread.watch.events
    events.write("owner-deinit")
    guard stops else { return }
    thread.performSelectorAndWait { [stopped] in
      events.write("stopThread")
      stopped.set()
      RunLoop.current.stop()
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// B3: the references to the owner of a thread.
struct TargetRetained: Experiment {
  let id = "B3"
  let title = "The owner of a thread that is its target"
  let articles: [Article] = [.yongzhen]
  let claim = """
    A thread that is made with a target holds it, and the target holds the thread: the view controller is never deallocated. A \
    thread that is made with a block that holds it weakly lets it go.
    """
  let verdict = Verdict.corrected(
    """
    Both are so, for as long as the thread runs. It is the running thread that holds its body and so the owner, not the cycle: \
    once the body has returned, the thread lets go of it, and the owner is released in either case.
    """)
  let evidence = """
    Foundation: a thread holds its target or block until it has run it, and not longer.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "the owner is the thread's target; the user goes back", life(bench) { $0.startWithTarget() },
        requires: "owner kept; once the thread has ended: owner released, thread released")
      outcome.observe(
        "the thread's block holds the owner weakly; the user goes back", life(bench) { $0.startWithBlock() },
        requires: "owner released; once the thread has ended: owner released, thread released")
      return outcome
    }
  }

  private func life(_ bench: Bench, _ viewDidLoad: (ViewController) -> WatchedThread) -> String {
    let weakOwner = Weak<ViewController>()
    let watch: Watch
    do {
      let owner = ViewController(bench)
      weakOwner.object = owner
      watch = viewDidLoad(owner).watch
      watch.settle()
      withExtendedLifetime(owner) {}
    }
    let before = "owner \(weakOwner.state)"
    watch.say(before)
    watch.cut()
    let isReleased = watch.waitForRelease()
    return """
      \(before); once the thread has ended: owner \(weakOwner.state), thread \(isReleased ? "released" : "kept")
      """
  }
}

/// Yongzhen's view controller.
private final class ViewController: Sendable {
  private let bench: Bench
  private let thread = Mutex<WatchedThread?>(nil)

  init(_ bench: Bench) {
    self.bench = bench
  }

  func startWithTarget() -> WatchedThread {
    start(WatchedThread(on: bench, name: "YZThread") { watch in self.run(watch) })
  }

  func startWithBlock() -> WatchedThread {
    start(
      WatchedThread(on: bench, name: "MJThread") { [weak self] watch in
        watch.events.write(self == nil ? "begin-without-owner" : "begin")
        watch.loop.add(watch.port(), forMode: .default)
        watch.loop.run()
      })
  }

  private func start(_ made: WatchedThread) -> WatchedThread {
    thread.withLock { $0 = made }
    made.start()
    return made
  }

  private func run(_ watch: Watch) {
    watch.events.write("begin")
    watch.loop.add(watch.port(), forMode: .default)
    watch.loop.run()
  }
}

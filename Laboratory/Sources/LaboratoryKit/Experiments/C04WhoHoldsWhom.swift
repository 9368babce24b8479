// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// C4: the references between loops and thread objects.
struct WhoHoldsWhom: Experiment {
  let id = "C4"
  let title = "Who holds whom"
  let articles: [Article] = [.xiong]
  let claim = """
    The loop has a member _pthread. So the loop holds its thread, and the global dictionary holds the loop: as long as there is \
    a loop, there is the thread object.
    """
  let verdict = Verdict.refuted(
    """
    A pthread_t is a number and holds nothing. The running thread holds its object and its loop. When it has ended, it holds \
    neither, and neither holds the other.
    """)
  let evidence = """
    R115 of Core Foundation: when the thread ends, its loop is let go; the member _pthread is no reference to an \
    object.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let life = Life(bench, holdsThread: false, holdsLoop: false)
      outcome.observe(
        "while the thread runs, and nobody holds anything", life.state, requires: "thread kept, loop kept")
      life.end()
      outcome.observe("after its end", life.state, requires: "thread released, loop released")
      outcome.observe(
        "after its end, if somebody holds the loop", after(bench, holdsLoop: true),
        requires: "thread released, loop kept")
      outcome.observe(
        "after its end, if somebody holds the thread's object", after(bench, holdsThread: true),
        requires: "thread kept, loop released")
      return outcome
    }
  }

  private func after(_ bench: Bench, holdsThread: Bool = false, holdsLoop: Bool = false) -> String {
    let life = Life(bench, holdsThread: holdsThread, holdsLoop: holdsLoop)
    life.end()
    return life.state
  }
}

/// The life of a thread with a loop.
private struct Life {
  private let weakThread = Weak<WatchedThread>()
  private let weakLoop = Weak<RunLoop>()
  private let watch: Watch
  private let mayEnd: Flag
  private let heldThread: WatchedThread?
  private let heldLoop: Found<RunLoop?>

  init(_ bench: Bench, holdsThread: Bool, holdsLoop: Bool) {
    let mayEnd = bench.flag()
    let hasLoop = bench.flag()
    let heldLoop = Found<RunLoop?>(nil)
    let thread = WatchedThread(on: bench) { [weakLoop] watch in
      weakLoop.object = RunLoop.current
      if holdsLoop { heldLoop.value = RunLoop.current }
      watch.events.write("loop-made")
      hasLoop.set()
      mayEnd.wait()
    }
    watch = thread.watch
    weakThread.object = thread
    heldThread = holdsThread ? thread : nil
    self.mayEnd = mayEnd
    self.heldLoop = heldLoop
    thread.start()
    hasLoop.wait()
  }

  var state: String {
    defer { withExtendedLifetime((heldThread, heldLoop)) {} }
    watch.say("thread \(weakThread.state), loop \(weakLoop.state)")
    return "thread \(weakThread.state), loop \(weakLoop.state)"
  }

  /// Ends the thread, and waits until it has released everything.
  func end() {
    mayEnd.set()
    if let heldThread { _ = heldThread.finished() } else { watch.waitForRelease() }
  }
}

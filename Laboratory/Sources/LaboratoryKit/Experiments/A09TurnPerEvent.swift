// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A9: the `while` loop around the run loop.
struct TurnPerEvent: Experiment {
  let id = "A9"
  let title = "One turn for each perform"
  let articles: [Article] = [.qiu, .xilankong]
  let claim = """
    In while (keepRunning && [runloop runMode:beforeDate:distantFuture]) { NSLog(@"111"); } nothing is printed until something \
    is performed on the thread, which prints 22; then 111 is printed once. The thread is always the same.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R8 of Core Foundation: a run that returns after a source returns when one was performed; a block is none. \
    Apple's guide: the loop processes all queued perform calls each time, rather than one.
    """

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let events = Record()
      let isOver = bench.flag()
      let threads = ThreadCount()
      let doOther: @Sendable () -> Void = {
        threads.note()
        events.write("22")
      }
      let thread = WatchedThread(on: bench, events: events) { watch in
        let runLoop = watch.loop
        runLoop.add(watch.port(), forMode: .default)
        while !isOver.isSet, !watch.isCut,
          runLoop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true) != .finished
        {
          threads.note()
          if !watch.isCut { events.write("111") }
        }
      }
      thread.start()
      let watch = thread.watch

      outcome.observe("with nothing performed on the thread", watch.news(), requires: "none")
      for number in 1...3 {
        thread.performSelector(doOther)
        outcome.observe("with perform \(number)", watch.news(), requires: "22 111")
      }
      hold(thread) { for _ in 1...3 { thread.performSelector(doOther) } }
      outcome.observe("with three performs, posted while the thread is held", watch.news(), requires: "22 22 22 111")
      watch.perform(doOther)
      outcome.observe("with a block of the loop, which is no source", watch.news(), requires: "22")
      isOver.set()
      thread.performSelector(doOther)
      outcome.observe("with one more perform, the flag having been set before", watch.news(), requires: "22 111")
      outcome.observe("the thread", thread.finished(), requires: "isExecuting = 0, isFinished = 1")
      outcome.observe("how many threads did all this", "\(threads.count)", requires: "1")
      thread.end()
      return outcome
    }
  }

  /// Holds a thread in a block, which is not a source, while `body` posts to it.
  private func hold(_ thread: WatchedThread, while body: () -> Void) {
    let isHeld = thread.watch.bench.flag()
    let mayGoOn = thread.watch.bench.flag()
    thread.watch.perform {
      isHeld.set()
      mayGoOn.wait()
    }
    isHeld.wait()
    body()
    mayGoOn.set()
  }
}

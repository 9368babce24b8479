import RunLoopCore
import RunLoopThreads

/// A9: Apple's loop around the loop.
struct TurnPerEvent: Experiment {
  let id = "A9"
  let title = "One turn for each event"
  let documents = ["001", "003"]
  let claim = """
    In while (keepRunning && [runloop runMode:beforeDate:distantFuture]) { NSLog(@"111"); } nothing is printed until something \
    is performed on the thread, which prints 22; then 111 is printed once. The thread is always the same.
    """
  let verdict = Verdict.corrected(
    """
    A source or a port's message is an event: it ends the run, and the loop around it turns once. A block that is performed \
    on the thread runs inside the run and ends nothing; to let the loop around it look at its flag again, stop the run.
    """)

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
      let source = RunLoop.Source(perform: doOther)
      let thread = WatchedThread(on: bench, events: events) { watch in
        let runLoop = watch.loop
        runLoop.add(source, forMode: .default)
        while !isOver.isSet, !watch.isCut,
          runLoop.run(mode: .default, for: .infinity, returnAfterSourceHandled: true) != .finished
        {
          threads.note()
          if !watch.isCut { events.write("111") }
        }
      }
      thread.start()
      let watch = thread.watch
      func send() {
        source.signal()
        watch.wakeUp()
      }

      outcome.observe("without an event", watch.news(), requires: "none")
      for number in 1...3 {
        send()
        outcome.observe("with event \(number), a source", watch.news(), requires: "22 111")
      }
      thread.performSelector(doOther)
      outcome.observe("with a block that is performed on the thread", watch.news(), requires: "22")
      isOver.set()
      send()
      outcome.observe("with one more event, the flag having been set before", watch.news(), requires: "22 111")
      outcome.observe("the thread", thread.finished(), requires: "isExecuting = 0, isFinished = 1")
      outcome.observe("how many threads did all this", "\(threads.count)", requires: "1")
      thread.end()
      return outcome
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// C5: a loop that four threads use at once.
struct FourThreads: Experiment {
  let id = "C5"
  let title = "A loop in the hands of four threads"
  let articles: [Article] = [.xilankong, .ren]
  let claim = "CFRunLoop's functions are safe to call from any thread. NSRunLoop's methods are not."
  let verdict = Verdict.confirmed
  let evidence = """
    R120 of Core Foundation: everything but running may be called from any thread. Apple's documentation says of \
    NSRunLoop that it is not safe.
    """
  let difference = Difference.numbered(
    ["M15"],
    """
    There is one kind of loop, and it is safe: whatever four threads post, send, add, signal and remove at the \
    same time is accounted for. Only its own thread may run it; another is stopped by a precondition.
    """)

  private static let rounds = 500

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let blocks = Tally()
      let messages = Tally()
      let result = Found("none")
      let total = 4 * Self.rounds
      let stopWhenDone: @Sendable () -> Void = {
        if blocks.count + messages.count == 2 * total { RunLoop.current.stop() }
      }
      let port = Port(queueLimit: total) { _, _ in
        messages.add()
        stopWhenDone()
      }
      let thread = WatchedThread(on: bench) { watch in
        watch.loop.add(port, forMode: .default)
        let end = watch.loop.run(mode: .default, for: bench.meeting.patience)
        result.value = "\(end)"
        watch.events.write("\(end)")
      }
      thread.start()
      thread.watch.settle()
      guard let loop = thread.runLoop else { return outcome }
      let hammers = (0..<4).map { _ in
        startThread {
          for _ in 0..<Self.rounds {
            hammer(loop, port) {
              blocks.add(); stopWhenDone()
            }
          }
        }
      }
      for hammer in hammers { hammer.result() }
      bench.meeting.wait { thread.watch.hasReturned }
      let flags = thread.finished()
      outcome.observe("blocks that ran, of \(total)", "\(blocks.count)", requires: "\(total)")
      outcome.observe("messages that were received, of \(total)", "\(messages.count)", requires: "\(total)")
      outcome.observe(
        "the run, which the last of them stops", "\(result.value); \(flags)",
        requires: "stopped; isExecuting = 0, isFinished = 1")
      let counts = loop.statistics
      outcome.observe(
        "blocks that were dropped, and whatever was refused", "\(counts.droppedBlockCount), \(counts.rejectionCount)",
        requires: "0, 0")
      thread.end()
      return outcome
    }
  }

  /// Performs one round of all operations that other threads may use on a loop.
  private func hammer(_ loop: RunLoop, _ port: Port, _ block: @escaping @Sendable () -> Void) {
    let source = RunLoop.Source {}
    let timer = Timer(timeInterval: 0, repeats: false) { _ in }
    let observer = RunLoop.Observer(activities: .all) { _, _ in }
    loop.add(source, forMode: .default)
    loop.add(timer, forMode: .common)
    loop.add(observer, forMode: .default)
    source.signal()
    loop.wakeUp()
    loop.perform(block)
    source.invalidate()
    loop.remove(timer, forMode: .common)
    observer.invalidate()
    try? port.send(Port.Message())
  }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import RunLoopCore
import RunLoopThreads

/// A10: Dispatch's use of its threads.
struct WorkersWithoutLoops: Experiment {
  let id = "A10"
  let title = "Loops on the threads of dispatch"
  let articles: [Article] = [.xiong]
  let claim = """
    The author guesses that dispatch treats its cached threads as he has treated his: that it gets the thread's loop, adds a \
    source to it, and runs it.
    """
  let verdict = Verdict.refuted(
    """
    A thread of dispatch has no loop. Like every thread it gets one if a block asks for it, and then nothing is in that loop \
    and a run of it is finished at once. The threads wait for work in a way of their own.
    """)
  let evidence = """
    R113 of Core Foundation: a thread's loop is made when somebody asks for it. R24: a run of the empty loop is \
    finished.
    """

  let needsFreshWorkers = true

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe("ten blocks of a global queue find", loops(.global(), bench), requires: "a loop: 0, none: 10")
      outcome.observe(
        "ten blocks of a serial queue find", loops(DispatchQueue(label: "myQueue"), bench),
        requires: "a loop: 0, none: 10")
      outcome.observe(
        "a block that asks for the loop of its thread gets one", onWorker(.global(), keepsIt: true) { ask(bench) },
        requires: "timers: 0, sources: 0, and a run of it is finished, observers called: no")
      return outcome
    }
  }

  private func loops(_ queue: DispatchQueue, _ bench: Bench) -> String {
    let found = (1...10).map { _ in onWorker(queue) { hasLoop } }
    for hasLoop in found { bench.log.write("\(queue.label): \(hasLoop ? "a thread with a loop" : "a thread without")") }
    return "a loop: \(found.count { $0 }), none: \(found.count { !$0 })"
  }

  private func ask(_ bench: Bench) -> String {
    let loop = RunLoop.current
    let calls = Record()
    let items = LoopDescription(of: loop, names: [])
    let timers = items.count("timers", of: .default)
    let sources = items.count("sources0", of: .default) + items.count("sources1", of: .default)
    loop.add(RunLoop.Observer(activities: .all) { _, activity in calls.write(activity.name) }, forMode: .default)
    let result = loop.run(mode: .default, for: bench.meeting.patience)
    return """
      timers: \(timers), sources: \(sources), and a run of it is \(result), \
      observers called: \(calls.count > 0 ? "yes" : "no")
      """
  }

  /// Runs a block on a thread of a queue, while the calling thread waits.
  ///
  /// - Parameter keepsIt: Whether the thread runs nothing else afterwards, because it then has a loop that blocks of
  ///   other experiments would find.
  private func onWorker<Result: Sendable>(
    _ queue: DispatchQueue, keepsIt: Bool = false, _ body: @escaping @Sendable () -> Result
  ) -> Result {
    let result = Found<Result?>(nil)
    let hasRun = DispatchSemaphore(value: 0)
    queue.async {
      result.value = body()
      hasRun.signal()
      if keepsIt { while true { pause() } }
    }
    hasRun.wait()
    guard let value = result.value else { preconditionFailure("the block has not run") }
    return value
  }
}

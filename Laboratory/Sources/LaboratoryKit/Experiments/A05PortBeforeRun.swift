// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// A5: the port must be added before the run.
struct PortBeforeRun: Experiment {
  let id = "A5"
  let title = "The port must be added before the run"
  let articles: [Article] = [.xiong, .xilankong, .ren]
  let claim = "A loop has to be given a source before it is run; otherwise the run does not begin at all."
  let verdict = Verdict.confirmed
  let evidence = """
    R24 of Core Foundation: a run of an empty mode is finished at once.
    """
  let difference = Difference.numbered(
    ["M21"],
    """
    A task for the thread that has ended is rejected with an error.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      outcome.observe(
        "the port is added after the run",
        life(bench) { watch in
          watch.loop.run()
          watch.events.write("run-returned")
          watch.loop.add(watch.port(), forMode: .default)
        }, requires: "run-returned; returned; a task is refused, as thread \"MyThread\" has finished")
      outcome.observe(
        "the port is added before the run",
        life(bench) { watch in
          watch.loop.add(watch.port(), forMode: .default)
          watch.loop.run()
          if !watch.isCut { watch.events.write("run-returned") }
        }, requires: "none; asleep; a task is accepted")
      return outcome
    }
  }

  /// Returns the thread's events, the state it settled in, and whether it then accepts a task.
  private func life(_ bench: Bench, _ body: @escaping @Sendable (Watch) -> Void) -> String {
    let thread = WatchedThread(on: bench, body: body)
    thread.start()
    defer { thread.end() }
    let rest = thread.watch.settle()
    if rest == .returned { _ = thread.finished() }
    let answer = bench.answer { try thread.perform {} }
    return "\(thread.watch.events.text); \(rest.rawValue); a task is \(answer)"
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads

/// B6: Yongzhen's final class, and ours.
struct PermanentThreads: Experiment {
  let id = "B6"
  let title = "Start, execute, stop"
  let articles: [Article] = [.yongzhen]
  let claim = """
    MJPermenantThread starts its thread when it is made, executes tasks on it, and ends it by stop, after which nothing runs, or \
    by its dealloc. With CFRunLoopRunInMode in place of the flag it behaves the same.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    The code and the log of the article; R35 of Core Foundation: a stop ends the run.
    """
  let difference = Difference.numbered(
    ["M14", "M21"],
    """
    A task that comes after the stop of our ResidentThread is rejected with an error. That of the article is \
    lost in silence, as Apple's loop has it.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      for variant in PermanentThread.Variant.allCases {
        let name = variant == .flag ? "with a flag" : "with CFRunLoopRunInMode"
        outcome.observe(
          "Yongzhen's class \(name): three tasks and a stop", stopped(bench, variant),
          requires: "begin task task task end; isExecuting = 0, isFinished = 1; a task after the stop: silence")
        outcome.observe(
          "the same, released in place of the stop", released(bench, variant),
          requires: "begin task task task end dealloc")
      }
      outcome.observe(
        "a ResidentThread: three tasks and a stop", ours(bench),
        requires: """
          task task task, on 1 thread; draining, then finished; a task after the stop: refused, as thread "ours" has finished
          """)
      return outcome
    }
  }

  private func stopped(_ bench: Bench, _ variant: PermanentThread.Variant) -> String {
    let permanent = PermanentThread(variant, on: bench)
    let inner = permanent.innerThread
    executeThree(permanent)
    permanent.stop()
    let flags = inner?.finished() ?? "no thread"
    let before = permanent.watch.events.count
    permanent.execute { permanent.watch.events.write("late-task") }
    permanent.watch.settle()
    defer { inner?.end() }
    let answer = permanent.watch.events.count == before ? "silence" : "it runs"
    return "\(permanent.watch.events.text); \(flags); a task after the stop: \(answer)"
  }

  private func released(_ bench: Bench, _ variant: PermanentThread.Variant) -> String {
    let watch: Watch
    do {
      let permanent = PermanentThread(variant, on: bench)
      watch = permanent.watch
      executeThree(permanent)
      withExtendedLifetime(permanent) {}
    }
    watch.settle()
    watch.cut()
    watch.waitForRelease()
    return watch.events.text
  }

  private func executeThree(_ permanent: PermanentThread) {
    let watch = permanent.watch
    watch.settle()
    for _ in 1...3 {
      permanent.execute { watch.events.write("task") }
      watch.settle()
    }
  }

  private func ours(_ bench: Bench) -> String {
    guard let thread = try? ResidentThread(name: "ours") else { return "no thread" }
    let events = Record()
    let threads = ThreadCount()
    for _ in 1...3 {
      _ = try? thread.perform {
        events.write("task")
        threads.note()
      }
    }
    let state = thread.stop()
    _ = try? thread.join(timeout: bench.meeting.patience)
    let answer = bench.answer { try thread.perform { events.write("late-task") } }
    bench.log.write("ours: \(events.text)")
    return """
      \(events.text), on \(threads.count) thread; \(state), then \(thread.state); a task after the stop: \(answer)
      """
  }
}

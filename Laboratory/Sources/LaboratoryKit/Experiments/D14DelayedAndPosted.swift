// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import RunLoopCore
import RunLoopTesting
import RunLoopThreads

/// D14: the implementation of delayed performs, and of performs on another thread.
struct DelayedAndPosted: Experiment {
  let id = "D14"
  let title = "Performing later, and on another thread"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    performSelector:afterDelay: makes a timer in the loop of the calling thread, and performSelector:onThread: makes a timer \
    in the loop of that thread. Without a loop on the thread, neither has an effect.
    """
  let verdict = Verdict.corrected(
    """
    What is performed later is a timer, as claimed. What is performed on another thread is not: a source0 does \
    it, which is signalled, and the loop of that thread is woken at once. Either has no effect as long as nobody \
    runs the loop.
    """)
  let evidence = """
    Apple's stacks: what is performed on a thread runs in __NSThreadPerformPerform, below the call-out for a \
    source0. Its documentation: perform(afterDelay:) is a timer.
    """
  let difference = Difference.numbered(
    ["M14"],
    """
    When the thread ends, what waited for it is dropped, and its token says so.
    """)

  func run(on bench: Bench) -> Outcome {
    var outcome = Outcome()
    outcome.observe(
      "performed after a delay of 2 s, by a thread that runs its loop", delayed(bench, busy: 0),
      requires: "before the run: none, in the run: at 2 s in timer")
    outcome.observe(
      "the same, by a thread that runs its loop only after 10 s", delayed(bench, busy: 10),
      requires: "before the run: none, in the run: at 10 s in timer")
    outcome.observe(
      "performed at 2 s on a thread whose loop sleeps, by another thread", posted(bench),
      requires: "timers made: none; at 2 s in source0 on the loop's thread")
    outcome.observe(
      "performed on a thread that ends without having run its loop", dropped(bench),
      requires: "ran: none; dropped; dropped when the thread ended: 1")
    outcome.observe(
      "perform(afterDelay:) of 2 s and perform(_:) on a thread object, whose loop runs", onThread(bench),
      requires: "at 0 s in source0, at 2 s in timer")
    outcome.observe(
      "the same on a thread that never asks for a loop", onThreadWithoutLoop(bench),
      requires: "ran: none; dropped dropped")
    return outcome
  }

  private func onThread(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let ran = Record()
      rig.keepAlive()
      do throws(ThreadError) {
        try Thread.current.perform(afterDelay: .seconds(2)) { ran.write(callOut(rig)) }
        try Thread.current.perform { ran.write(callOut(rig)) }
      } catch {
        return "\(error)"
      }
      rig.loop.run(mode: .default, for: .seconds(10))
      return ran.lines.joined(separator: ", ")
    }
  }

  private func onThreadWithoutLoop(_ bench: Bench) -> String {
    let ran = Record()
    let mayEnd = DispatchSemaphore(value: 0)
    let thread = Thread { mayEnd.wait() }
    thread.start()
    do throws(ThreadError) {
      let tokens = [
        try thread.perform(afterDelay: .zero) { ran.write("delayed") }, try thread.perform { ran.write("posted") },
      ]
      mayEnd.signal()
      try thread.join()
      return "ran: \(ran.text); " + tokens.map { "\($0.state)" }.joined(separator: " ")
    } catch {
      mayEnd.signal()
      return "\(error)"
    }
  }

  private func delayed(_ bench: Bench, busy seconds: Int) -> String {
    bench.onLoop { rig in
      let ran = Record()
      _ = Timer.scheduledTimer(withTimeInterval: 2, repeats: false) { _ in ran.write(callOut(rig)) }
      rig.time.spend(.seconds(seconds))
      let before = ran.take()
      rig.note("the loop runs")
      rig.loop.run(mode: .default, for: .seconds(10))
      return "before the run: \(before), in the run: \(ran.text)"
    }
  }

  private func posted(_ bench: Bench) -> String {
    bench.onLoop { rig in
      let loop = rig.loop
      let thread = pthread_self()
      let object = Thread.current
      let timers = Record()
      let ran = Record()
      rig.keepAlive()
      rig.time.at(.seconds(2)) {
        onNewThread {
          _ = try? object.perform {
            let isOwn = pthread_equal(pthread_self(), thread) != 0
            ran.write("\(callOut(rig)) on \(isOwn ? "the loop's" : "another") thread")
          }
        }
        if loop.nextDeadline(forMode: .default) != nil { timers.write("one") }
      }
      loop.run(mode: .default, for: .seconds(10))
      return "timers made: \(timers.text); \(ran.text)"
    }
  }

  private func dropped(_ bench: Bench) -> String {
    let ran = Record()
    let (loop, token) = bench.onLoop { rig in
      let object = Thread.current
      let token = onNewThread { try? object.perform { ran.write(callOut(rig)) } }
      rig.time.spend(.seconds(10))
      rig.note("the thread ends")
      return (rig.loop, token)
    }
    let state = token.map { "\($0.state)" } ?? "rejected"
    return "ran: \(ran.text); \(state); dropped when the thread ended: \(loop.statistics.droppedBlockCount)"
  }

  /// Returns the kind of the current call-out, and the time.
  private func callOut(_ rig: Rig) -> String {
    let callOut = currentCallOut()
    rig.note("call-out: \(callOut)")
    return "at \(rig.seconds) s in \(callOut)"
  }
}

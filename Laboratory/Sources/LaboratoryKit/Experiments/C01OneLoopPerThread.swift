// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopInstruments
import RunLoopThreads

/// C1: a thread and its loop.
struct OneLoopPerThread: Experiment {
  let id = "C1"
  let title = "One loop for each thread"
  let articles: [Article] = [.xiong, .xilankong, .ren]
  let claim = """
    Threads and loops correspond one to one. A new thread has no loop; its loop is made when it is first asked for, and kept in \
    a global dictionary until the thread ends.
    """
  let verdict = Verdict.confirmed
  let evidence = """
    R113 of Core Foundation: made at the first request, the same until the thread ends, kept in a dictionary \
    under a lock.
    """
  let difference = Difference.addition(
    """
    Instead of the dictionary the thread itself holds its loop, so that nobody looks it up under a lock. A list \
    of the living loops, for instruments, holds none of them.
    """)

  func run(on bench: Bench) -> Outcome {
    bench.onThreads {
      var outcome = Outcome()
      let one = Subject(bench)
      let other = Subject(bench)
      outcome.observe(
        "the loop of a new thread, before anybody has asked for it", one.before, requires: "none")
      outcome.observe(
        "asked for twice, a thread gets the same loop", one.isSame(one.loop, one.again), requires: "yes")
      outcome.observe(
        "from outside, the thread's object has the same loop", one.isSame(one.loop, one.thread.runLoop), requires: "yes"
      )
      outcome.observe("two threads have the same loop", one.isSame(one.loop, other.loop), requires: "no")
      outcome.observe("the loop is in the list of loops", one.isListed, requires: "yes")
      one.end()
      outcome.observe("and after the thread has ended", one.isListed, requires: "no")
      outcome.observe(
        "the loop of the thread that has ended", one.thread.runLoop == nil ? "none" : "one", requires: "none")
      other.end()
      return outcome
    }
  }
}

/// A thread that gets its loop, and waits.
private final class Subject: Sendable {
  private struct Findings {
    var hadLoop = false
    var loops: [RunLoop] = []
  }

  let thread: WatchedThread
  private let mayEnd: Flag
  private let findings: Found<Findings>

  init(_ bench: Bench) {
    let mayEnd = bench.flag()
    let hasAsked = bench.flag()
    let findings = Found(Findings())
    thread = WatchedThread(on: bench) { watch in
      let hadLoop = hasLoop
      findings.value = Findings(hadLoop: hadLoop, loops: [RunLoop.current, RunLoop.current])
      watch.events.write("asked")
      hasAsked.set()
      mayEnd.wait()
    }
    self.mayEnd = mayEnd
    self.findings = findings
    thread.start()
    hasAsked.wait()
  }

  var before: String { findings.value.hadLoop ? "one" : "none" }

  var loop: RunLoop? { findings.value.loops.first }

  var again: RunLoop? { findings.value.loops.last }

  var isListed: String {
    Instruments.loops.contains { $0.thread == thread.watch.threadNumber } ? "yes" : "no"
  }

  func isSame(_ first: RunLoop?, _ second: RunLoop?) -> String { first != nil && first === second ? "yes" : "no" }

  func end() {
    mayEnd.set()
    _ = thread.finished()
  }
}

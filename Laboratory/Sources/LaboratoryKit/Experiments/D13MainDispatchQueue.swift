// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore

/// D13: the queue that the main loop serves.
struct MainDispatchQueue: Experiment {
  let id = "D13"
  let title = "The main dispatch queue and the others"
  let articles: [Article] = [.xilankong, .ren]
  let claim = """
    A dispatch to the main queue sends a message to the main thread's loop, which wakes, takes the block from the message and \
    runs it in its call-out for the main queue. Only the main queue is served so; what is dispatched to other threads remains \
    the business of libdispatch.
    """
  let verdict = Verdict.corrected(
    """
    The main queue's blocks run on the main thread, in that call-out, and only while the main loop runs; other queues need \
    no loop. But the message has no block in it: it says that the queue is not empty, and one call-out runs all blocks that \
    wait there.
    """)
  let evidence = """
    R110 and R111 of Core Foundation: only the main loop serves the main queue, and one call runs all that was \
    queued before it.
    """
  let needsMainThread = true

  func run(on bench: Bench) -> Outcome {
    bench.onMainLoop { rig in
      var outcome = Outcome()
      let main = Record()
      DispatchQueue.main.async { main.write(whereabouts(rig)) }
      outcome.observe(
        "a block of a global queue, while the main loop does not run", otherQueue(.global(), rig),
        requires: "another thread, without a loop, call-outs in the stack: none")
      outcome.observe(
        "a block of a serial queue", otherQueue(DispatchQueue(label: "serial"), rig),
        requires: "another thread, without a loop, call-outs in the stack: none")
      outcome.observe("a block of the main queue, dispatched before them", main.take(), requires: "none")
      let result = rig.runOnce()
      outcome.observe(
        "the same block when the main loop runs", "\(main.text); \(result)",
        requires: "the main thread, in mainQueue, runLoopIsServicingTheMainDispatchQueue in the stack; handledSource")
      outcome.observe(
        "a block that another thread dispatches to the main queue when the loop is about to sleep", wakes(rig),
        requires: "the main thread, in mainQueue, runLoopIsServicingTheMainDispatchQueue in the stack")
      outcome.observe("three blocks of the main queue", batch(rig), requires: "ran: 3, call-outs: 1")
      return outcome
    }
  }

  /// Returns where a block runs: the thread, the kind of call-out, and its function.
  private func whereabouts(_ rig: MainRig) -> String {
    let stack = stack()
    rig.log.write("a block of the main queue on \(rig.thread); the stack of the loop:")
    for function in loopPart(of: stack) { rig.log.write("  \(function)") }
    return "\(rig.thread), in \(kindOfCallOut(in: stack)), \(callOuts(in: stack)) in the stack"
  }

  /// Returns where a queue runs a block while the main thread waits for it, instead of running its loop.
  private func otherQueue(_ queue: DispatchQueue, _ rig: MainRig) -> String {
    let found = Record()
    let isDone = DispatchSemaphore(value: 0)
    queue.async {
      let loop = hasLoop ? "with a loop" : "without a loop"
      found.write("\(rig.thread), \(loop), call-outs in the stack: \(callOuts(in: stack()))")
      isDone.signal()
    }
    isDone.wait()
    rig.log.write("a block of the queue \(queue.label) on \(found.text)")
    return found.take()
  }

  private func wakes(_ rig: MainRig) -> String {
    let found = Record()
    let isIdle = DispatchSemaphore(value: 0)
    let thread = startThread {
      isIdle.wait()
      DispatchQueue.main.async { found.write(whereabouts(rig)) }
    }
    rig.runOnce { isIdle.signal() }
    // Releases the thread in case the loop has not slept.
    isIdle.signal()
    thread.result()
    return found.text
  }

  private func batch(_ rig: MainRig) -> String {
    let ran = Record()
    // The loop makes at most one call-out for the main queue in a pass.
    for _ in 0..<3 { DispatchQueue.main.async { ran.write("\(rig.passes.count)") } }
    rig.runOnce()
    return "ran: \(ran.count), call-outs: \(Set(ran.lines).count)"
  }
}

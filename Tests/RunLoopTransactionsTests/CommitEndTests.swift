// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("Waiters for a commit are called once", .timeLimit(.minutes(20)))
struct CommitEndTests {
  @Test("with nothing marked, a closure waits for the next commit of the pipeline")
  func waits() {
    let log = Log()
    onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.whenCommitted { log.write("\($0.cause):\($0.number)") }
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
      log.write("run")
      loop.once(.entry) { pipeline.setNeedsCommit() }
      loop.run(mode: .default, for: 1)
    }
    #expect(log.text == "run beforeWaiting:1")
  }

  @Test("a closure added in a stage belongs to that commit unless something was marked for the next")
  func inStage() {
    let log = Log()
    onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      let rounds = Counter()
      pipeline.add(
        .init(name: "commit") {
          guard rounds.add() == 1 else { return }
          pipeline.whenCommitted { log.write("this:\($0.number)") }
          pipeline.setNeedsCommit()
          pipeline.whenCommitted { log.write("next:\($0.number)") }
        })
      pipeline.setNeedsCommit()
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log.text == "this:1 next:2")
  }

  @Test("a closure that runs the loop lets the other closures be called there, each once")
  func nested() {
    let log = Log()
    onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.whenCommitted { _ in
        log.write("1")
        pipeline.setNeedsCommit()
        loop.run(mode: .default, for: 0.1)
        log.write("returned")
      }
      pipeline.whenCommitted { _ in log.write("2") }
      pipeline.setNeedsCommit()
      loop.keepAlive()
      loop.run(mode: .default, for: 0.01)
    }
    #expect(log.text == "1 returned 2" || log.text == "1 2 returned", "\(log.text)")
  }

  @Test("the loop's end calls every closure in order on its thread, reporting that there was no commit")
  func endOfLoop() {
    let log = Log()
    let thread = onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.setNeedsCommit()
      for number in 1...3 {
        pipeline.whenCommitted { log.write("\(number):\($0.cause):\(RunLoop.callingThreadID)") }
      }
      return RunLoop.callingThreadID
    }
    #expect(log.text == (1...3).map { "\($0):loopEnded:\(thread)" }.joined(separator: " "))
  }

  @Test("after the loop's end closures are called at once, marks have no effect, and flushes are rejected")
  func afterEnd() {
    let log = Log()
    let pipeline = onVirtualTime { _, loop in CommitPipeline(loop: loop) }
    pipeline.add(.init(name: "commit") { log.write("commit") })
    pipeline.add(.init(name: "update", order: TurnOrder.updates) { log.write("update") })
    pipeline.setNeedsCommit()
    pipeline.whenCommitted { log.write("\($0.cause)") }
    #expect(log.text == "loopEnded")
  }

  @Test("a pipeline of a loop whose thread has ended calls every closure at once")
  func madeAfterEnd() {
    let log = Log()
    let pipeline = CommitPipeline(loop: onNewThread { RunLoop.current })
    pipeline.setNeedsCommit()
    pipeline.whenCommitted { log.write("\($0.cause) \($0.number) \($0.isCommitted)") }
    #expect(log.text == "loopEnded 0 false")
  }

  @Test(
    "a thread that ends in a stage or in a closure leaves no closure uncalled", arguments: [true, false])
  func exit(inStage: Bool) throws {
    let log = Log()
    let thread = Thread {
      let pipeline = CommitPipeline(loop: .current)
      pipeline.add(.init(name: "commit") { if inStage { Thread.exit() } })
      pipeline.whenCommitted {
        log.write("1:\($0.cause)")
        if !inStage { Thread.exit() }
      }
      pipeline.whenCommitted { log.write("2:\($0.cause)") }
      pipeline.setNeedsCommit()
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    try thread.tryStart()
    try thread.join()
    #expect(log.text == (inStage ? "1:loopEnded 2:loopEnded" : "1:beforeWaiting 2:beforeWaiting"))
  }

  @Test("a removed pipeline calls every closure, commits no more, and is released with its contents")
  func invalidated() {
    let log = Log()
    onVirtualTime { _, loop in
      let token = Token(log)
      var pipeline: CommitPipeline? = CommitPipeline(loop: loop)
      pipeline?.add(.init(name: "commit") { withExtendedLifetime(token) { log.write("commit") } })
      pipeline?.setNeedsCommit()
      for number in 1...2 { pipeline?.whenCommitted { log.write("\(number):\($0.cause):\($0.isCommitted)") } }
      pipeline?.invalidate()
      pipeline?.invalidate()
      pipeline?.setNeedsCommit()
      pipeline?.flush()
      pipeline?.whenCommitted { log.write("late:\($0.cause)") }
      pipeline = nil
      loop.keepAlive()
      loop.run(mode: .default, for: 0.1)
      log.write("ran")
    }
    #expect(log.text == "1:invalidated:false 2:invalidated:false late:invalidated ran released")
  }

  @Test("a pipeline removed in a stage performs no further stages")
  func invalidatedInStage() {
    let log = Log()
    onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(
        .init(name: "first", order: TurnOrder.updates) { [unowned pipeline] in
          log.write("first")
          pipeline.invalidate()
        })
      pipeline.add(.init(name: "commit") { log.write("commit") })
      pipeline.whenCommitted { log.write("\($0.cause)") }
      pipeline.setNeedsCommit()
      loop.keepAlive()
      loop.run(mode: .default, for: 0.1)
    }
    #expect(log.text == "first invalidated")
  }

  @Test("a pipeline and its contents are released with the loop")
  func released() {
    let log = Log()
    onVirtualTime { _, loop in
      let token = Token(log)
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(.init(name: "commit") { token.touch() })
      pipeline.setNeedsCommit()
    }
    #expect(log.text == "released")
  }
}

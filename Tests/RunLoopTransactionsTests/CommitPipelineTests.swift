// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("The commit of a turn", .timeLimit(.minutes(20)))
struct CommitPipelineTests {
  /// Runs a loop with a pipeline that logs its commits, and returns the log.
  private func record(_ body: @escaping @Sendable (RunLoop, CommitPipeline, Log) -> Void) -> String {
    let log = Log()
    onVirtualTime { _, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(.init(name: "commit") { log.write("commit") })
      body(loop, pipeline, log)
    }
    return log.text
  }

  private func watch(_ loop: RunLoop, _ log: Log) {
    loop.add(RunLoop.Observer(activities: .all) { _, activity in log.write(activity.letter) }, forMode: .default)
  }

  @Test("all changes of a turn get a single commit before the wait")
  func oneCommit() {
    let log = record { loop, pipeline, log in
      watch(loop, log)
      for _ in 0..<3 {
        loop.signalled {
          log.write("S0")
          for _ in 0..<5 { pipeline.setNeedsCommit() }
        }
      }
      loop.keepAlive()
      pipeline.whenCommitted { log.write("\($0.cause) \($0.number) \($0.marks)") }
      loop.run(mode: "other", for: 0)
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "E BT BS S0 S0 S0 BT BS BW commit beforeWaiting 1 15 AW X")
  }

  @Test("stages run in their order, between observers of intermediate orders")
  func orders() {
    let log = record { loop, pipeline, log in
      loop.keepAlive()
      loop.run(mode: .default, for: 0.001)
      for (order, name) in [
        (TurnOrder.queues, "queue"), (1_500_000, "between"), (1_999_500, "late"), (2_000_500, "between"),
        (TurnOrder.asyncCommit, "async"),
      ] {
        loop.add(
          RunLoop.Observer(activities: .beforeWaiting, order: order) { _, _ in log.write(name) }, forMode: .default)
      }
      for (order, name) in [
        (Int.max, "last"), (TurnOrder.afterCommit, "after"), (TurnOrder.beforeCommit, "before"),
        (TurnOrder.updates, "update"), (TurnOrder.commit, "second"), (TurnOrder.updates, "updates"),
      ] {
        pipeline.add(.init(name: name, order: order) { log.write(name) })
      }
      pipeline.whenCommitted { _ in log.write("done") }
      loop.once(.entry) { pipeline.setNeedsCommit() }
      loop.run(mode: .default, for: 0.001)
    }
    #expect(log == "queue update updates between before late commit second between after last done async")
  }

  @Test("a mark by an observer between two stages belongs to the commit if its order comes before")
  func markBetween() {
    let log = record { loop, pipeline, log in
      pipeline.add(.init(name: "update", order: TurnOrder.updates) { log.write("update") })
      pipeline.whenCommitted { log.write("\($0.marks)") }
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting, repeats: false, order: 1_500_000) { _, _ in
          log.write("mark")
          pipeline.setNeedsCommit()
        }, forMode: .default)
      loop.keepAlive()
      loop.run(mode: .default, for: 0.001)
    }
    #expect(log == "mark update commit 1")
  }

  @Test("marks by stages before the commit belong to it, and the commit's own marks to the next")
  func markInStages() {
    let log = record { loop, pipeline, log in
      let rounds = Counter()
      pipeline.add(.init(name: "update", order: TurnOrder.updates) { pipeline.setNeedsCommit() })
      pipeline.add(.init(name: "again") { if rounds.add() == 1 { pipeline.setNeedsCommit() } })
      loop.once(.entry) {
        pipeline.setNeedsCommit()
        pipeline.whenCommitted { log.write("\($0.number):\($0.marks)") }
      }
      loop.keepAlive()
      loop.run(mode: .default, for: 0.010)
      pipeline.whenCommitted { log.write("\($0.number):\($0.marks)") }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "commit 1:2 commit 2:2")
  }

  @Test("a run that ends without waiting commits at its exit")
  func exit() {
    let log = record { loop, pipeline, log in
      loop.signalled { pipeline.setNeedsCommit() }
      pipeline.whenCommitted { log.write("\($0.cause)") }
      watch(loop, log)
      loop.run(mode: .default, for: 0)
    }
    #expect(log == "E BT BS X commit exit")
  }

  @Test(
    "commits happen in every common mode and in the application's start mode",
    arguments: [RunLoop.Mode.default, .tracking, .initialization, "other"])
  func modes(mode: RunLoop.Mode) throws {
    let log = record { loop, pipeline, log in
      #expect(failure { () throws(RunLoopError) in try loop.addCommonMode(.tracking) } == nil)
      pipeline.add(.init(name: "update", order: TurnOrder.updates) { log.write("update") })
      pipeline.whenCommitted { _ in log.write("done") }
      loop.signalled(mode: mode) { pipeline.setNeedsCommit() }
      loop.run(mode: mode, for: 0.001)
      log.write("returned")
    }
    #expect(log == (mode == "other" ? "returned done" : "update commit done returned"))
  }

  @Test("a change by another thread wakes the loop to commit")
  func otherThread() {
    let log = Log()
    onVirtualTime { time, loop in
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(.init(name: "commit") { time.stamp(log, "commit") })
      time.at(.milliseconds(5)) { pipeline.setNeedsCommit() }
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log.text == "commit5")
  }

  @Test("without marks no stage runs and the loop is not woken, before and after a commit")
  func rest() {
    onVirtualTime { time, loop in
      let pipeline = CommitPipeline(loop: loop)
      let commits = Counter()
      pipeline.add(.init(name: "commit") { commits.add() })
      loop.keepAlive()
      loop.run(mode: .default, for: 10)
      #expect(time.sleepCount == 1 && commits.value == 0)
      loop.once(.entry) { pipeline.setNeedsCommit() }
      loop.run(mode: .default, for: 10)
      #expect(commits.value == 1)
      let sleeps = time.sleepCount
      loop.run(mode: .default, for: 1000)
      #expect(time.sleepCount == sleeps + 1 && commits.value == 1)
    }
  }

  @Test("a pipeline keeps its loop alive only while a commit is due")
  func keepsAlive() {
    onVirtualTime { time, loop in
      let pipeline = CommitPipeline(loop: loop)
      let commits = Counter()
      pipeline.add(.init(name: "commit") { commits.add() })
      #expect(loop.run(mode: .default, for: 1) == .finished)
      pipeline.setNeedsCommit()
      #expect(loop.run(mode: .default, for: 1) == .finished)
      #expect(commits.value == 1 && time.milliseconds == 0)
      // The frame interval has not ended yet.
      pipeline.setNeedsCommit()
      #expect(loop.run(mode: .default, for: 1) == .finished)
      #expect(commits.value == 2 && time.milliseconds == 16)
    }
  }

  @Test("a flush commits marked changes immediately, and does nothing without any")
  func flush() {
    let log = record { loop, pipeline, log in
      pipeline.flush()
      for _ in 0..<2 {
        pipeline.setNeedsCommit()
        pipeline.whenCommitted { log.write("\($0.cause)") }
        pipeline.flush()
      }
      log.write("returned")
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "commit flush commit flush returned")
  }

  @Test("a flush within a stage has no effect, and one between two stages performs the remaining ones")
  func flushWithin() {
    let log = record { loop, pipeline, log in
      pipeline.add(
        .init(name: "update", order: TurnOrder.updates) {
          log.write("update")
          pipeline.flush()
        })
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting, repeats: false, order: 1_500_000) { _, _ in
          log.write("between")
          pipeline.flush()
          log.write("flushed")
        }, forMode: .default)
      pipeline.setNeedsCommit()
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "update between commit flushed")
  }

  @Test("a flush by another thread fails with both threads' names")
  func foreignFlush() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let thread = try ResidentThread(name: "the owner")
      // It has a name once it works.
      try thread.performAndWait {}
      let pipeline = CommitPipeline(loop: thread.runLoop)
      pipeline.flush()
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("flush() of a commit pipeline of") && message.contains("\"the owner\""), "\(message)")
  }

  @Test("a run nested in a stage makes no commit, and the later stages follow")
  func nestedRun() {
    let log = record { loop, pipeline, log in
      pipeline.add(.init(name: "after", order: TurnOrder.afterCommit) { log.write("after") })
      pipeline.add(
        .init(name: "run", order: TurnOrder.beforeCommit) {
          loop.once(.beforeWaiting) { log.write("nested") }
          loop.after(.milliseconds(50)) { _ in pipeline.setNeedsCommit() }
          loop.run(mode: .default, for: 0.100)
          log.write("returned")
        })
      pipeline.setNeedsCommit()
      pipeline.whenCommitted { log.write("\($0.marks)") }
      loop.run(mode: .default, for: 0.001)
    }
    #expect(log == "nested returned commit after 2")
  }

  @Test("a mark between the commit and the wait gets a commit before the loop sleeps")
  func markBehind() {
    let log = record { loop, pipeline, log in
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting, repeats: false, order: TurnOrder.asyncCommit) { _, _ in
          log.write("mark")
          pipeline.setNeedsCommit()
        }, forMode: .default)
      watch(loop, log)
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "E BT BS BW mark AW BT BS BW commit AW X")
  }

  @Test("two pipelines of a loop commit independently")
  func twoPipelines() {
    let log = record { loop, pipeline, log in
      let other = CommitPipeline(loop: loop)
      other.add(.init(name: "other") { log.write("other") })
      pipeline.setNeedsCommit()
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
      other.setNeedsCommit()
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "commit other")
  }

  @Test("marks by four threads are each covered by one commit")
  func stress() throws {
    let thread = try ResidentThread(name: "commits")
    let pipeline = CommitPipeline(loop: thread.runLoop, frameInterval: .microseconds(50))
    let changes = Counter()
    let committed = Box(0)
    pipeline.add(.init(name: "commit") { committed.value = changes.value })
    let callbacks = Counter()
    let covered = Counter()
    let threads = (0..<4).map { _ in
      startThread {
        for _ in 0..<2000 {
          let number = changes.add()
          pipeline.setNeedsCommit()
          pipeline.whenCommitted { report in
            #expect(report.isCommitted && report.marks > 0)
            if committed.value >= number { covered.add() }
            callbacks.add()
          }
        }
      }
    }
    for thread in threads { thread.result() }
    waitUntil { callbacks.value == 8000 }
    #expect(covered.value == 8000 && committed.value == 8000)
    thread.stop()
    try thread.join()
  }
}

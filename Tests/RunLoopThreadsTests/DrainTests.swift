// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Draining a resident thread", .timeLimit(.minutes(20)))
struct DrainTests {
  @Test("a task that yields forever does not keep its thread alive, and counts as a late job")
  func endlessTask() async throws {
    for limits in [ResidentThread.DrainLimits(), .init(rounds: 7), .init(rounds: .max, time: .milliseconds(1))] {
      let isOver = Box(false)
      let begun = Latch()
      let thread = try ResidentThread(drainLimits: limits)
      let task = Task(executorPreference: thread) {
        begun.open()
        while !isOver.value { await Task.yield() }
      }
      begun.wait()
      thread.stop()
      let report = try thread.join()
      #expect(report.lateJobCount >= 1 && thread.counts.lateJobCount >= report.lateJobCount)
      isOver.value = true
      await task.value
    }
  }

  @Test("a task with a few remaining steps finishes on the thread before onStop")
  func someSteps() async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(onStop: { log.write("stop") })
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    let task = Task(executorPreference: thread) {
      for _ in 0..<50 {
        await Task.yield()
        await pinned.bump()
      }
      log.write("task")
      return RunLoop.callingThreadID
    }
    thread.stop()
    hold.released.open()
    #expect(await task.value == id)
    let report = try thread.join()
    #expect(log.text == "task stop" && report.lateJobCount == 0)
    // The number of jobs per step depends on the runtime.
    #expect(report.jobCount >= 50)
  }

  @Test("draining a task takes at most the fixed number of rounds")
  func rounds() async throws {
    // The number of jobs before and between the steps of a task depends on the runtime.
    let none = try await steps(limit: 0)
    #expect(none.made <= 1 && none.late >= 1)
    let negative = try await steps(limit: -1)
    #expect(negative.made == none.made && negative.late >= 1)
    let few = try await steps(limit: 3)
    #expect(few.made > none.made && few.made <= none.made + 3 && few.late >= 1)
    let enough = try await steps(limit: 100)
    #expect(enough.made == 10 && enough.late == 0)
  }

  /// Returns the number of a task's ten steps that are made on the thread after the stop, and the number of late
  /// jobs.
  private func steps(limit: Int) async throws -> (made: Int, late: Int) {
    let hold = Hold()
    let thread = try ResidentThread(drainLimits: .init(rounds: limit, time: .seconds(1000)))
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    let task = Task(executorPreference: thread) {
      var steps = 0
      for _ in 0..<10 {
        if RunLoop.callingThreadID == id { steps += 1 }
        await Task.yield()
      }
      return steps
    }
    thread.stop()
    hold.released.open()
    let report = try thread.join()
    return (await task.value, report.lateJobCount)
  }

  @Test("a block that schedules itself does not keep its thread alive, and its last post is dropped")
  func endlessBlock() throws {
    let thread = try ResidentThread()
    let loop = thread.runLoop
    let hold = Hold()
    let calls = Counter()
    @Sendable func again() {
      calls.add()
      loop.perform { again() }
    }
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    loop.perform { again() }
    thread.stop()
    hold.released.open()
    try thread.join()
    #expect(calls.value == 1 && loop.statistics.droppedBlockCount == 1)
  }

  @Test("work of any kind posted before the stop runs in order")
  func order() async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(onStop: { log.write("stop") })
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    thread.runLoop.perform(inModes: ["never"]) { log.write("1") }
    try thread.perform { log.write("2") }
    let pinned = Pinned(thread)
    let task = Task.immediate { await pinned.write("3", log) }
    try thread.perform(inModes: ["never", "nor this"]) { log.write("4") }
    thread.runLoop.perform {
      log.write("5")
      RunLoop.current.perform { log.write("never") }
    }
    thread.stop()
    thread.runLoop.perform { log.write("never") }
    hold.released.open()
    let report = try thread.join()
    await task.value
    #expect(log.text == "1 2 3 4 5 stop")
    #expect(report.completedCount == 3 && report.lateJobCount == 0 && thread.runLoop.statistics.droppedBlockCount == 2)
  }
}

// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Awaiting a resident thread", .timeLimit(.minutes(20)))
struct ResidentAsyncTests {
  private struct Failure: Error, Equatable {}

  @Test("an awaited call returns the value or throws the error")
  func run() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    #expect(try await thread.run { RunLoop.callingThreadID } == id)
    await #expect(throws: Failure()) { try await thread.run { throw Failure() } }
    thread.stop()
    let report = await thread.finished()
    #expect(report.completedCount == 3 && report.posted == 3)
    #expect(await thread.finished() == report)
  }

  @Test("an already cancelled task posts nothing")
  func cancelledBefore() async throws {
    let thread = try ResidentThread()
    let task = Task {
      // The task cancels itself, to be certain that it happens first.
      withUnsafeCurrentTask { $0?.cancel() }
      try await thread.run { neverRuns() }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    thread.stop()
    #expect(await thread.finished().posted == 0)
  }

  @Test("a task cancelled while its work waits withdraws the work")
  func cancelledPending() async throws {
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    let task = Task { try await thread.run { neverRuns() } }
    // The work is posted now, or by a task that is already cancelled. Both throw the same error.
    await Task.yield()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    hold.released.open()
    thread.stop()
    let report = await thread.finished()
    #expect(report.completedCount == 1 && report.posted == 1 + report.cancelledCount)
  }

  @Test("work that has begun continues when its task is cancelled")
  func cancelledRunning() async throws {
    let hold = Hold()
    let thread = try ResidentThread()
    let task = Task {
      try await thread.run {
        hold.occupy()
        return 7
      }
    }
    let canceller = Thread.started {
      hold.begun.wait()
      task.cancel()
      hold.released.open()
    }
    #expect(try await task.value == 7)
    try canceller.join()
    thread.stop()
    #expect(await thread.finished().completedCount == 1)
  }

  @Test("awaiting work on a stopped thread throws an error that says so")
  func stopped() async throws {
    let hold = Hold()
    let thread = try ResidentThread(name: "stopped")
    try thread.perform { hold.occupy() }
    thread.stop()
    await #expect(throws: ThreadError.stopping(thread: "thread \"stopped\"")) { try await thread.run {} }
    hold.released.open()
    _ = await thread.finished()
    await #expect(throws: ThreadError.finished(thread: "thread \"stopped\"")) { try await thread.run {} }
    #expect(thread.counts.rejectedCount == 2 && thread.counts.posted == 3)
  }

  @Test("an immediate stop ends the wait for work that has not begun")
  func stopImmediately() async throws {
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    // Otherwise, the loop could take both at once.
    hold.begun.wait()
    let task = Task { try await thread.run { neverRuns() } }
    let stopper = Thread.started {
      waitUntil { thread.runLoop.inbox.mayHaveEntries }
      thread.stop(.immediately)
      hold.released.open()
    }
    await #expect(throws: ThreadError.cancelled) { try await task.value }
    try stopper.join()
    let report = await thread.finished()
    #expect(report.completedCount == 1 && report.cancelledCount == 1)
  }

  @Test("any number of tasks may await the thread's end, before and after it")
  func finished() async throws {
    let thread = try ResidentThread()
    let waiters = (0..<5).map { _ in Task { await thread.finished() } }
    thread.stop()
    let report = await thread.finished()
    for waiter in waiters { #expect(await waiter.value == report) }
  }
}

private func neverRuns() { Issue.record("what was taken back has run") }

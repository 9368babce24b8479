// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import TestSupport
import Testing

private actor Worker {
  private var count = 0

  func work() async throws -> Int {
    try await RunLoop.current.withTimeout(.seconds(5)) {
      count += 1
      await Task.yield()
      assertIsolated()
      return count
    }
  }
}

@Suite("A cancelled sleep and a timeout on virtual time", .timeLimit(.minutes(20)))
struct CancelledSleepTests {
  private func elapsed(_ body: @escaping @Sendable (VirtualTime) async throws -> Void) async throws -> Duration {
    try await VirtualTime.onResidentThread { time in
      try await body(time)
      return time.elapsed
    }
  }

  /// Waits for another thread.
  private func awaitPool() async {
    await withCheckedContinuation { continuation in DispatchQueue.global().async { continuation.resume() } }
  }

  @Test("the time does not move to a cancelled sleep's date while something else is awaited")
  func cancelled() async throws {
    let time = try await elapsed { time in
      for _ in 0..<20 {
        let sleeper = Task(executorPreference: time.thread) { try await Task.sleep(for: .seconds(1000)) }
        await Task.yield()
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        await awaitPool()
      }
    }
    #expect(time == .zero)
  }

  @Test(
    "a sleep that outlives its thread continues in real time",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func leftBehind() async throws {
    try await VirtualTime.onResidentThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      let sleeper = Task(executorPreference: worker) { try? await Task.sleep(for: .milliseconds(20)) }
      while worker.runLoop.itemCounts.timers == 0 { await Task.yield() }
      worker.stop(.immediately)
      _ = await worker.finished()
      _ = await sleeper.value
    }
  }

  @Test("a cancelled sleep leaves no timer behind")
  func timers() async throws {
    try await VirtualTime.onResidentThread { time in
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<10 { group.addTask { try? await Task.sleep(for: .seconds(1000)) } }
        await Task.yield()
        group.cancelAll()
      }
      try await time.clock.sleep(for: .seconds(1))
      #expect(time.pending.isEmpty)
      #expect(time.elapsed == .seconds(1))
    }
  }

  @Test("an operation that finishes before its timeout returns its result, and no time passes")
  func inTime() async throws {
    let time = try await elapsed { time in
      let value = try await RunLoop.current.withTimeout(.seconds(1000)) { 7 }
      #expect(value == 7)
      await awaitPool()
      #expect(time.pending.isEmpty)
    }
    #expect(time == .zero)
  }

  @Test("an operation that exceeds its timeout is cancelled and awaited")
  func late() async throws {
    let time = try await elapsed { time in
      let isOver = Box(false)
      do {
        try await RunLoop.current.withTimeout(.seconds(5)) {
          defer { isOver.value = true }
          try await Task.sleep(for: .seconds(50))
        }
        Issue.record("no error")
      } catch let error as RunLoop.TimeoutError {
        #expect(error.limit == .seconds(5) && error.cause is CancellationError)
      }
      #expect(isOver.value)
    }
    #expect(time == .seconds(5))
  }

  @Test("the value of an operation that returns despite its cancellation is not lost")
  func ignoring() async throws {
    let time = try await elapsed { _ in
      let value = try await RunLoop.current.withTimeout(.seconds(5)) {
        try? await Task.sleep(for: .seconds(50))
        return 8
      }
      #expect(value == 8)
    }
    #expect(time == .seconds(5))
  }

  @Test("the operation's own error and the caller's cancellation are passed on")
  func errors() async throws {
    struct Failure: Error {}
    _ = try await elapsed { time in
      let loop = RunLoop.current
      await #expect(throws: Failure.self) { try await loop.withTimeout(.seconds(5)) { throw Failure() } }
      let caller = Task(executorPreference: time.thread) {
        try await loop.withTimeout(.seconds(1000)) { try await Task.sleep(for: .seconds(500)) }
      }
      await Task.yield()
      caller.cancel()
      await #expect(throws: CancellationError.self) { try await caller.value }
      #expect(time.elapsed == .zero)
    }
  }

  @Test("an actor's code under a timeout runs on the actor")
  func isolated() async throws {
    _ = try await elapsed { _ in
      let worker = Worker()
      let count = try await worker.work()
      #expect(count == 1)
    }
  }

  @Test("on an ended loop an operation with a timeout does not begin")
  func ended() async throws {
    let thread = try ResidentThread(name: "ended")
    let loop = thread.runLoop
    thread.stop()
    _ = await thread.finished()
    await #expect(throws: RunLoopError.loopHasEnded) {
      try await loop.withTimeout(.seconds(5)) { Issue.record("it began") }
    }
  }
}

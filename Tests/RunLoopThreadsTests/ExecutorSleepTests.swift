// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Sleeps of tasks on a resident thread", .timeLimit(.minutes(20)))
struct ExecutorSleepTests {
  /// The ways to write a sleep.
  enum Spelling: CaseIterable, Sendable {
    case nanoseconds, duration, suspending, instant

    func sleep(seconds: UInt64) async throws {
      let duration = Duration.seconds(seconds)
      switch self {
      case .nanoseconds: try await Task.sleep(nanoseconds: seconds * 1_000_000_000)
      case .duration: try await Task.sleep(for: duration, tolerance: .milliseconds(1))
      case .suspending: try await Task.sleep(for: duration, clock: .suspending)
      case .instant: try await Task.sleep(until: .now + duration, clock: .continuous)
      }
    }
  }

  @Test(
    "a task's sleep ends by a timer in the thread's loop",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"),
    arguments: Spelling.allCases)
  func timer(spelling: Spelling) async throws {
    let thread = try ResidentThread(name: "sleeps")
    let loop = thread.runLoop
    let seen = Task(executorPreference: thread) {
      let sleeper = Task(executorPreference: thread) { try await spelling.sleep(seconds: 1_000_000) }
      // The sleeper's job, which adds the timer, runs after this one.
      while loop.nextDeadline(forMode: .default) == nil { await Task.yield() }
      let left = loop.now.duration(to: loop.nextDeadline(forMode: .default) ?? loop.now)
      #expect(left > .seconds(500_000) && left <= .seconds(1_000_001), "\(left)")
      sleeper.cancel()
      return await sleeper.result
    }
    let result = await seen.value
    #expect(throws: CancellationError.self) { try result.get() }
  }

  @Test(
    "a task that sleeps when its thread ends still wakes",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func threadEnds() async throws {
    var span: Duration = .milliseconds(5)
    // Repeats with a longer sleep, until one outlasts its thread.
    while try await !outlasts(span) { span *= 2 }
  }

  @Test("a sleep ends even if all pool threads are blocked, before and after its own thread's end")
  func blockedPool() async {
    await #expect(processExitsWith: .success) {
      let thread = try ResidentThread(name: "sleeps")
      let loop = thread.runLoop
      let (blocked, free) = (Counter(), Latch())
      for _ in 0..<256 {
        Task.detached {
          blocked.add()
          free.wait()
        }
      }
      // This function runs on the pool's last thread.
      waitUntil { blocked.value >= sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1 }
      let first = Latch()
      Task(executorPreference: thread) {
        try await Task.sleep(for: .milliseconds(1))
        first.open()
      }
      first.wait()
      let second = Latch()
      Task(executorPreference: thread) {
        try await Task.sleep(for: .seconds(1))
        second.open()
      }
      waitUntil { loop.itemCounts.timers == 1 || second.isOpen }
      thread.stop(.immediately)
      try thread.join()
      second.wait()
      free.open()
    }
  }

  /// Returns whether a task's sleep outlasted its thread; the task continues in either case.
  private func outlasts(_ span: Duration) async throws -> Bool {
    let thread = try ResidentThread(name: "sleeps")
    let loop = thread.runLoop
    let isAwake = Box(false)
    let sleeper = Task(executorPreference: thread) {
      try await Task.sleep(for: span)
      isAwake.value = true
    }
    while loop.nextDeadline(forMode: .default) == nil, !isAwake.value { await Task.yield() }
    thread.stop()
    _ = await thread.finished()
    let wasOver = isAwake.value
    try await sleeper.value
    #expect(isAwake.value)
    return !wasOver
  }
}

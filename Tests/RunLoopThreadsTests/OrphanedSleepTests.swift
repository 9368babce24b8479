// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Sleeps that outlive their thread", .timeLimit(.minutes(20)))
struct OrphanedSleepTests {
  /// The number of threads that wait for sleeps; each test needs its own process.
  private static var waiters: Int { System.threadNames.count { $0.hasPrefix("sleep") } }

  @Test(
    "any number of orphaned sleeps share one waiting thread",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func many() async {
    await #expect(processExitsWith: .success) {
      let thread = try ResidentThread()
      let loop = thread.runLoop
      let tasks = (0..<500).map { _ in
        Task(executorPreference: thread) { try await Task.sleep(for: .seconds(1000)) }
      }
      waitUntil { loop.itemCounts.timers == 500 }
      for task in tasks.prefix(250) { task.cancel() }
      thread.stop()
      try thread.join()
      #expect(OrphanedSleepTests.waiters <= 1)
      for task in tasks { task.cancel() }
      for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    }
  }

  @Test(
    "a task that outlived its thread keeps sleeping, without a thread per sleep",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func surviving() async {
    await #expect(processExitsWith: .success) {
      let thread = try ResidentThread()
      thread.stop()
      try thread.join()
      let rejections = thread.runLoop.statistics.rejectionCount
      let tasks = (0..<50).map { _ in
        Task(executorPreference: thread) {
          for _ in 0..<5 { try await Task.sleep(for: .microseconds(100)) }
        }
      }
      for task in tasks { try await task.value }
      #expect(OrphanedSleepTests.waiters == 1)
      #expect(thread.runLoop.statistics.rejectionCount == rejections, "the end of a thread is no mistake of a task's")
      // Each task has begun and was resumed at least once; a sleep whose end has passed already suspends nothing.
      #expect(thread.counts.lateJobCount >= 100)
    }
  }

  @Test(
    "a sleep on a test's time continues until its own instant, not for the length of that time",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func kept() async throws {
    for isContinuous in [true, false] {
      let thread = try ResidentThread(
        loop: .make(timekeeper: OverlongTime()), name: "kept", onStart: nil, onStop: nil)
      let loop = thread.runLoop
      let sleeper = Task(executorPreference: thread) {
        if isContinuous {
          try await Task.sleep(for: .milliseconds(2), clock: .continuous)
        } else {
          try await Task.sleep(for: .milliseconds(2), clock: .suspending)
        }
      }
      waitUntil { loop.itemCounts.timers == 1 }
      thread.stop(.immediately)
      _ = await thread.finished()
      try await sleeper.value
    }
  }

  @Test("orphaned sleeps end on time, the earliest first, including one that is added during a wait")
  func order() {
    var (unit, wasInTime) = (20_000_000 as Int64, false)
    // Repeats with more time, if a sleep could have ended before all were added.
    while !wasInTime {
      let sleeps = OrphanedSleeps()
      let log = Log()
      let over = Latch()
      let now = Tick.monotonicNow
      sleeps.add(until: now + 2 * unit) {
        log.write("3")
        over.open()
      }
      sleeps.add(until: now + unit) { log.write("2") }
      sleeps.add(until: .distantPast) { log.write("1") }
      sleeps.add(until: .never) { log.write("never") }
      wasInTime = Tick.monotonicNow < now + unit
      over.wait()
      #expect(Tick.monotonicNow >= now + 2 * unit)
      #expect(!wasInTime || log.text == "1 2 3")
      unit *= 2
    }
  }

  #if DEBUG
    @Test("orphaned sleeps end on time even if no thread can be created, and the next attempt creates one")
    func noThread() {
      let sleeps = OrphanedSleeps()
      let plan = FaultPlan()
      plan.plan(.threadCreate, .fails(EAGAIN))
      let first = Latch()
      let deadline = Tick.after(.milliseconds(5))
      plan.rule { sleeps.add(until: deadline) { first.open() } }
      #expect(plan.isUsedUp)
      first.wait()
      #expect(Tick.monotonicNow >= deadline)
      let second = Latch()
      sleeps.add(until: .distantPast) { second.open() }
      second.wait()
    }

    @Test("failing to create a thread is an error, and the thread's loop has ended")
    func noThreadAtStart() {
      let plan = FaultPlan()
      plan.plan(.threadCreate, .fails(EAGAIN))
      let thread = Thread {}
      let error = ThreadError.cannotStart(thread: "a thread without a name", number: EAGAIN)
      plan.rule { thread.start() }
      #expect(thread.startError == error)
      #expect(thread.isFinished && thread.runLoop == nil)
    }
  #endif

  @Test("the heap returns each sleep once, by date and then by order of insertion")
  func heap() {
    var random = SplitMix64(seed: 12)
    for _ in 0..<50 {
      var heap = SleepHeap()
      let log = Log()
      let dates = (0..<100).map { _ in Int64.random(in: 0..<20, using: &random) }
      for (turn, date) in dates.enumerated() {
        let isFirst = heap.insert({ log.write("\(date):\(turn)") }, at: Tick(nanoseconds: date))
        #expect(isFirst == (date < dates[..<turn].min() ?? .max))
      }
      for now in 0..<20 {
        for wake in heap.takeDue(at: Tick(nanoseconds: Int64(now))) { wake() }
        #expect(heap.first > Tick(nanoseconds: Int64(now)))
      }
      let expected = dates.enumerated().sorted { ($0.element, $0.offset) < ($1.element, $1.offset) }
      #expect(log.text == expected.map { "\($0.element):\($0.offset)" }.joined(separator: " "))
      #expect(heap.first == .never && heap.removeAll().isEmpty)
    }
  }
}

/// A frozen time, on which every sleep appears to last a century.
private final class OverlongTime: LoopTimekeeper {
  let now = Tick(nanoseconds: 0)
  let wallOffset: Int64 = 0

  func sleep(_ sleep: LoopSleep) { if !sleep.isOver, !sleep.look() { sleep.wait(until: .never) } }
  func loopHasEnded() {}
  func duration(ofRealRest rest: Duration) -> Duration { .seconds(36_525 * 86_400) }
}

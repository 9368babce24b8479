// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Testing

@testable import RunLoopTesting

@Suite("Tasks on virtual time")
struct TaskTests {
  @Test(
    "sleeps of tasks take no real time, and end in the order of their dates",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func sleeps() async throws {
    try await VirtualTime.onResidentThread { time in
      await withTaskGroup { group in
        for seconds in [30, 10, 20] {
          group.addTask {
            try? await Task.sleep(for: .seconds(seconds))
            time.log.write("\(seconds) at \(time.elapsed)")
          }
        }
      }
      #expect(time.log.count(of: "10 at 10.0 seconds") == 1, "\(time.log.timedCallOuts)")
      #expect(time.log.count(of: "20 at 20.0 seconds") == 1)
      #expect(time.log.count(of: "30 at 30.0 seconds") == 1)
      #expect(time.elapsed == .seconds(30))
    }
  }

  @Test(
    "actors without their own executor run on the thread",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func actors() async throws {
    actor Cache {
      private var values: [Int] = []

      func load(_ value: Int) async throws {
        try await Task.sleep(for: .seconds(value))
        values.append(value)
      }

      func thread() -> Thread? { Thread.currentIfThere }
      var all: [Int] { values }
    }
    try await VirtualTime.onResidentThread { time in
      let cache = Cache()
      let own = Thread.currentIfThere
      #expect(await cache.thread() === own)
      async let slow: Void = cache.load(100)
      async let fast: Void = cache.load(1)
      _ = try await (slow, fast)
      #expect(await cache.all == [1, 100])
      #expect(time.elapsed == .seconds(100))
    }
  }

  @Test("a sleep on the clock is exact to the nanosecond, and can be cancelled")
  func clock() async throws {
    try await VirtualTime.onResidentThread { time in
      let clock = time.clock
      let began = clock.now
      try await clock.sleep(for: .nanoseconds(1_234_567_891))
      #expect(began.duration(to: clock.now) == .nanoseconds(1_234_567_891))
      #expect(clock.now == RunLoop.current.now && clock.minimumResolution == .nanoseconds(1))

      let task = Task(executorPreference: time.thread) {
        try await Task.sleep(for: .seconds(1 << 30), clock: clock)
      }
      try await clock.sleep(for: .seconds(1))
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(time.elapsed == .nanoseconds(2_234_567_891) && time.pending.isEmpty)

      let early = Task(executorPreference: time.thread) { try await Task.sleep(for: .seconds(1), clock: clock) }
      early.cancel()
      await #expect(throws: CancellationError.self) { try await early.value }
      try await clock.sleep(until: began)
      #expect(time.elapsed == .nanoseconds(2_234_567_891))
    }
  }

  @Test("a sleep on the clock that the body leaves behind ends with the body, as cancelled")
  func leftSleep() async throws {
    let left = try await VirtualTime.onResidentThread { time in
      let task = Task(executorPreference: time.thread) { [clock = time.clock] in try await clock.sleep(for: .seconds(9))
      }
      // The thread is busy, so the time does not advance.
      while time.pending.isEmpty { await Task.yield() }
      return task
    }
    await #expect(throws: CancellationError.self) { try await left.value }
  }

  @Test("abandoned sleeps end even if the body moved the time, and scripted actions do not happen")
  func leftSleepOnThread() async throws {
    let happened = Box(false)
    let (worker, left) = try VirtualTime.onThisThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      time.at(.seconds(5)) { happened.value = true }
      let task = Task(executorPreference: worker) { [clock = time.clock] in try await clock.sleep(for: .seconds(9)) }
      while time.pending.count < 2 { try worker.performAndWait {} }
      try time.advance(by: .seconds(1))
      return (worker, task)
    }
    await #expect(throws: CancellationError.self) { try await left.value }
    #expect(!happened.value)
    worker.stop()
    _ = await worker.finished()
  }

  @Test("code that takes a clock works with a test that owns the time")
  func injectedClock() throws {
    let time = VirtualTime()
    let worker = try ResidentThread(name: "worker", on: time)
    let task = Task(executorPreference: worker) { [clock = time.clock] in
      for number in 1...3 {
        try await clock.sleep(for: .seconds(10))
        time.log.write("\(number)")
      }
    }
    // The task has begun once its first sleep is pending.
    while time.pending.isEmpty { try worker.performAndWait {} }
    try time.advance(by: .seconds(25))
    #expect(time.log.count(of: "2") == 1 && time.log.count(of: "3") == 0)
    try time.runUntilIdle()
    #expect(time.log.count(of: "3") == 1 && time.elapsed == .seconds(30))
    task.cancel()
    worker.stop()
    try worker.join()
  }

  @Test(
    "a timeout against real work: the time is stopped while the body waits for the work",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func standsStill() async throws {
    try await VirtualTime.onResidentThread { time in
      RunLoop.current.schedule(in: .seconds(5)) { _ in time.log.write("time-out") }
      let answer = await time.standStill {
        await withCheckedContinuation { continuation in
          Thread { continuation.resume(returning: 42) }.start()
        }
      }
      #expect(answer == 42)
      #expect(time.elapsed == .zero)
      #expect(time.log.count(of: "time-out") == 0, "\(time.log.text)")
      try await Task.sleep(for: .seconds(5))
      #expect(time.log.count(of: "time-out") == 1)
    }
  }

  @Test(
    "timers, delayed work and a second thread share the time with the tasks",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func together() async throws {
    try await VirtualTime.onResidentThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      RunLoop.current.schedule(in: .seconds(2)) { _ in time.log.write("timer") }
      try worker.perform(afterDelay: .seconds(1)) { time.log.write("delayed") }
      let value = try await worker.run { 7 }
      try await Task.sleep(for: .seconds(3))
      #expect(value == 7)
      #expect(time.log.count(of: "timer") == 1 && time.log.count(of: "delayed") == 1)
      worker.stop()
      _ = await worker.finished()
    }
  }

  @Test("the body's result and error are passed out, and cancellation is passed in")
  func outcomes() async throws {
    #expect(try await VirtualTime.onResidentThread { _ in 5 } == 5)
    await #expect(throws: CancellationError.self) {
      try await VirtualTime.onResidentThread { _ in throw CancellationError() }
    }
    let task = Task {
      try await VirtualTime.onResidentThread { time in
        // An endless body, so the time moves until the task is cancelled.
        while true { try await Task.sleep(for: .seconds(1)) }
      }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test(
    "a task sleeps for the requested time whatever the real clock does meanwhile",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func exact() async throws {
    try await VirtualTime.onResidentThread { time in
      for seconds in [10, 70, 3600, 86_400] {
        let before = time.elapsed
        try await Task.sleep(for: .seconds(seconds))
        #expect(time.elapsed - before == .seconds(seconds))
      }
      let before = time.elapsed
      try await Task.sleep(nanoseconds: 50_000_000_000)
      #expect(time.elapsed - before == .seconds(50))
    }
  }

  @Test(
    "a sleep's lost time is restored, to whole milliseconds or the rounder duration",
    arguments: [
      // The time left, the maximum missing time and the intended duration, in microseconds.
      (left: 999, missing: 30, meant: 1000), (left: 1000, missing: 30, meant: 1000),
      (left: 1_494_990, missing: 900, meant: 1_495_000), (left: 1_494_990, missing: 4000, meant: 1_495_000),
      (left: 6000, missing: 4500, meant: 10_000), (left: 29_960_000, missing: 45_000, meant: 30_000_000),
      (left: 29_300_000, missing: 800_000, meant: 30_000_000),
      (left: 27_000_000, missing: 3_500_000, meant: 30_000_000),
      // As in the article: the test computed for 5 ms, or the machine was busy for that long.
      (left: 6980, missing: 5020, meant: 10_000), (left: 29_999_980, missing: 5020, meant: 30_000_000),
      (left: 1980, missing: 5020, meant: 2000),
    ])
  func missing(left: Int64, missing: Int64, meant: Int64) {
    #expect(LoopKeeper.meant(left: left * 1000, missing: missing * 1000) == meant * 1000)
  }

  @Test(
    "the log is the same a thousand times",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func deterministic() async throws {
    var logs: Set<String> = []
    for _ in 0..<1000 {
      let log = try await VirtualTime.onResidentThread { time in
        await withTaskGroup { group in
          for number in 1...3 {
            group.addTask {
              try? await Task.sleep(for: .seconds(10 * number))
              time.log.write("\(number)@\(time.elapsed)")
            }
          }
        }
        return time.log.text
      }
      logs.insert(log)
    }
    #expect(logs.count == 1, "\(logs)")
  }
}

extension Thread {
  /// The calling thread's object, for asynchronous code.
  static var currentIfThere: Thread? { Thread.current }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Durations, seconds and instants at their limits", .timeLimit(.minutes(20)))
struct ExtremeTimeTests {
  static let durations: [Duration] = [
    Duration(attoseconds: .max), Duration(attoseconds: .min), .seconds(Int64.max), .seconds(Int64.min),
    .nanoseconds(Int64.max), .nanoseconds(Int64.min), .seconds(-1), .zero, Duration(attoseconds: 1),
  ]
  static let seconds: [Double] = [
    .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .infinity, -.infinity, -1, 0, .leastNonzeroMagnitude, 1e300,
  ]

  private var instants: [SuspendingClock.Instant] {
    Self.durations.map { unsafeBitCast($0, to: SuspendingClock.Instant.self) }
  }

  @Test("timers and runs of a loop accept every duration")
  func loop() {
    onVirtualTime { time, loop in
      loop.keepAlive()
      for duration in Self.durations {
        let timer = loop.schedule(in: duration, repeating: duration, tolerance: duration) { _ in }
        timer.move(after: duration)
        _ = timer.debugDescription
        timer.invalidate()
        _ = Timer.ticks(every: duration, tolerance: duration, on: loop)
        loop.timerSlack = duration
        loop.timerSlack = nil
        time.setWallClock(by: duration)
        loop.perform { loop.stop() }
        loop.run(mode: .default, for: duration)
        _ = loop.instant(after: duration)
        _ = RunLoop.Waiting.adaptive(atMost: duration)
        #expect(!duration.text.isEmpty)
      }
      for instant in self.instants {
        let timer = Timer(deadline: instant, interval: .seconds(1)) { _ in }
        loop.add(timer, forMode: .default)
        timer.deadline = instant
        _ = (timer.deadline, timer.wallDate, loop.nextDeadline(forMode: .default), timer.debugDescription)
        timer.invalidate()
      }
      for seconds in Self.seconds + [.nan] {
        loop.perform { loop.stop() }
        loop.run(mode: .default, for: seconds)
        let timer = Timer(timeInterval: 1, repeats: true) { _ in }
        timer.tolerance = seconds
        timer.wallDate = seconds
        loop.add(timer, forMode: .default)
        _ = (timer.wallDate, timer.tolerance)
        timer.invalidate()
        if !seconds.isNaN { Timer(timeInterval: seconds, repeats: true) { _ in }.invalidate() }
      }
    }
  }

  @Test("a thread accepts every duration for work, waits and sleeps")
  func thread() async throws {
    let thread = try ResidentThread(name: "extreme")
    for duration in Self.durations {
      try thread.perform(afterDelay: duration) {}.cancel()
      try thread.thread.perform(afterDelay: duration) {}.cancel()
      #expect((try? thread.performAndWait(timeout: max(duration, .seconds(100))) { 1 }) == 1)
      let sleeper = Task(executorPreference: thread) {
        try await thread.runLoop.sleep(for: duration, tolerance: duration)
      }
      let limited = Task {
        try await thread.runLoop.withTimeout(duration) { try await Task.sleep(for: .seconds(1000)) }
      }
      sleeper.cancel()
      limited.cancel()
      _ = await (sleeper.result, limited.result)
      if duration <= .zero { #expect(throws: ThreadError.self) { try thread.thread.join(timeout: duration) } }
      var configuration = Thread.Configuration()
      configuration.timerSlack = duration
      _ = try ResidentThread(configuration: configuration, drainLimits: .init(time: duration))
    }
    for seconds in Self.seconds + [.nan] where !(seconds > 1) { Thread.sleep(forTimeInterval: seconds) }
  }

  @Test("a task may sleep until any instant of the system's clocks")
  func sleeps() async throws {
    let thread = try ResidentThread(name: "extreme")
    // In Swift 6.2, sleeps trap for an instant whose nanoseconds do not fit into 64 bits.
    for duration in Self.durations
    where ResidentThread.endsSleeps || (.seconds(-1 << 32) ... .seconds(1 << 32)).contains(duration) {
      let continuous = unsafeBitCast(duration, to: ContinuousClock.Instant.self)
      let sleepers = [
        Task(executorPreference: thread) { try await Task.sleep(until: continuous, clock: .continuous) },
        Task(executorPreference: thread) {
          try await Task.sleep(until: unsafeBitCast(duration, to: SuspendingClock.Instant.self), clock: .suspending)
        },
      ]
      for _ in 0..<10 { await Task.yield() }
      for sleeper in sleepers {
        sleeper.cancel()
        _ = await sleeper.result
      }
    }
    thread.stop(.immediately)
    _ = await thread.finished()
  }
}

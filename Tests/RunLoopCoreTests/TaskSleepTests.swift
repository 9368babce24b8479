// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("A task that sleeps on a loop", .timeLimit(.minutes(20)))
struct TaskSleepTests {
  @Test("a sleep is measured by the loop's clock, and takes no real time on a test's clock")
  func duration() async {
    let log = Log()
    await elsewhere {
      onVirtualTime { time, loop in
        loop.keepAlive()
        Task {
          try await loop.sleep(for: .seconds(30))
          time.stamp(log, "T")
          try await loop.sleep(for: .seconds(-1))
          time.stamp(log, "T")
          try await loop.sleep(for: .milliseconds(10), tolerance: .seconds(1), in: .default)
          log.write(time.milliseconds >= 30_010 && time.milliseconds <= 31_010 ? "in time" : "\(time.milliseconds)")
          loop.stop()
        }
        loop.runUntilStopped()
      }
    }
    #expect(log.text == "T30000 T30000 in time")
  }

  @Test("a task cancelled before or during its sleep wakes at once and leaves no timer")
  func cancelled() async {
    let running = await elsewhere { RunningLoop { loop, _ in loop.keepAlive() } }
    let loop = running.loop
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await loop.sleep(for: .seconds(1000))
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    let late = Task { try await loop.sleep(for: .seconds(1000)) }
    while loop.nextDeadline(forMode: .default) == nil { await Task.yield() }
    late.cancel()
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(loop.nextDeadline(forMode: .default) == nil)
    #expect(
      await elsewhere {
        loop.awaitSleep(.futex)
        loop.stop()
        return running.result()
      } == "stopped")
  }

  @Test("a loop that ends, or has ended, ends a task's sleep with an error")
  func ended() async {
    let tasks = Box<[Task<Void, any Error>]>([])
    let loop = await elsewhere {
      onNewThread {
        let loop = RunLoop.current
        for mode in [RunLoop.Mode.common, .default, "never run"] {
          tasks.value.append(Task { try await loop.sleep(for: .seconds(1000), in: mode) })
        }
        while loop.itemCounts.timers < 3 { sched_yield() }
        return loop
      }
    }
    for task in tasks.value { await #expect(throws: RunLoopError.loopHasEnded) { try await task.value } }
    await #expect(throws: RunLoopError.loopHasEnded) { try await loop.sleep(for: .zero) }
    // A call that throws does not report in addition.
    #expect(loop.statistics.rejectionCount == 0)
  }
}

@Suite("The dates of a timer as a sequence", .timeLimit(.minutes(20)))
struct TimerTicksTests {
  @Test("the sequence yields the dates of a repeating timer, which keeps its phase")
  func dates() async {
    let log = Log()
    await elsewhere {
      onVirtualTime { time, loop in
        let begin = loop.now
        let ticks = Timer.ticks(every: .seconds(10), on: loop)
        for wait in [10, 10, 5, 5] {
          loop.run(mode: .default, for: .seconds(wait))
          guard time.milliseconds % 10_000 == 0 else { continue }
          log.write("\(begin.duration(to: next(ticks) ?? begin))")
        }
      }
    }
    #expect(log.text == "10.0 seconds 20.0 seconds 30.0 seconds")
  }

  @Test("a slow task receives the newest date and not those it missed")
  func newest() async {
    let date = await elsewhere {
      onVirtualTime { _, loop in
        let begin = loop.now
        let ticks = Timer.ticks(every: .seconds(10), on: loop)
        loop.run(mode: .default, for: .seconds(35))
        return next(ticks).map { begin.duration(to: $0) }
      }
    }
    #expect(date == .seconds(30))
  }

  @Test("the timer of a sequence is released with the sequence and its iterators")
  func released() {
    let results = onVirtualTime { _, loop in
      var results: [RunLoop.RunResult] = []
      do {
        let ticks = Timer.ticks(every: .seconds(10), on: loop, in: .default)
        results.append(loop.run(mode: .default, for: .seconds(1)))
        withExtendedLifetime(ticks) {}
      }
      results.append(loop.run(mode: .default, for: .seconds(1)))
      return results
    }
    #expect(results == [.timedOut, .finished])
  }

  @Test("a sequence of dates ends with its loop, and at once on an ended loop")
  func ended() async {
    let (loop, waiting) = await elsewhere(loopWithTicks)
    #expect(await waiting.value == 0)
    for await _ in Timer.ticks(every: .seconds(1), on: loop) { Issue.record("a tick of a loop that has ended") }
    #expect(loop.statistics.rejectionCount == 0)
  }

  /// A loop that has ended, either before or while a task waited for its ticks.
  @Sendable private func loopWithTicks() -> (RunLoop, Task<Int, Never>) {
    onNewThread {
      let loop = RunLoop.current
      let ticks = Timer.ticks(every: .seconds(1000), on: loop)
      let waiting = Task {
        var count = 0
        for await _ in ticks { count += 1 }
        return count
      }
      return (loop, waiting)
    }
  }

  @Test("an interval that is not positive becomes a microsecond")
  func noInterval() async {
    let date = await elsewhere {
      onVirtualTime { _, loop in
        let begin = loop.now
        let ticks = Timer.ticks(every: .seconds(-1), on: loop)
        loop.run(mode: .default, for: .nanoseconds(5500))
        return next(ticks).map { begin.duration(to: $0) }
      }
    }
    #expect(date == .microseconds(5))
  }

  /// The next date, which must be available already.
  @Sendable private func next(_ ticks: EventSequence<SuspendingClock.Instant>) -> SuspendingClock.Instant? {
    let result = Box<SuspendingClock.Instant?>(nil)
    let done = Latch()
    Task {
      var iterator = ticks.makeAsyncIterator()
      result.value = await iterator.next()
      done.open()
    }
    done.wait()
    return result.value
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import Testing

@Suite("Durations and instants at their limits on virtual time", .timeLimit(.minutes(20)))
struct ExtremeTimeTests {
  private static let durations: [Duration] = [
    Duration(attoseconds: .max), Duration(attoseconds: .min), .seconds(Int64.max), .seconds(Int64.min),
    .nanoseconds(Int64.max), .nanoseconds(Int64.min), .seconds(-1), .zero, Duration(attoseconds: 1),
  ]

  @Test("the time moves by and to extreme durations, and never back", arguments: durations)
  func moves(_ duration: Duration) {
    let neverComes = duration >= .nanoseconds(Int64.max)
    do {
      try moveByEach(duration)
      #expect(!neverComes)
    } catch VirtualTimeError.sleepsIndefinitely {
      #expect(neverComes)
    } catch {
      Issue.record("\(error)")
    }
  }

  private func moveByEach(_ duration: Duration) throws {
    try VirtualTime.onThisThread(realTimeLimit: .milliseconds(1)) { time in
      var before = time.elapsed
      func check() {
        #expect(time.elapsed >= before)
        before = time.elapsed
      }
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.log.write("a") }
      time.at(duration) { time.log.write("b") }
      _ = (time.nextDeadline, time.timeUntilNext, time.pending.map(\.description))
      try time.advance(by: duration)
      check()
      try time.run(until: unsafeBitCast(duration, to: SuspendingClock.Instant.self))
      check()
      time.spend(duration)
      check()
      time.setWallClock(by: duration)
      time.setWallClock(by: duration)
      try time.advance(by: .seconds(2))
      check()
    }
  }

  @Test("a task sleeps for extreme durations by any clock until they pass or it is cancelled", arguments: durations)
  func sleeps(_ duration: Duration) async throws {
    try await VirtualTime.onResidentThread { time in
      let thread = try #require(time.thread)
      // In Swift 6.2, sleeps trap for an instant whose nanoseconds do not fit into 64 bits.
      let isForRuntime = ResidentThread.endsSleeps || (.seconds(-1 << 32) ... .seconds(1 << 32)).contains(duration)
      for number in 0..<3 where number != 1 || isForRuntime {
        let sleeper = Task(executorPreference: thread) {
          // The sum of such a duration and the time would overflow.
          let instant = unsafeBitCast(duration, to: SuspendingClock.Instant.self)
          switch number {
          case 0: try await time.clock.sleep(until: instant)
          case 1: try await Task.sleep(until: instant, clock: .suspending)
          default: try await RunLoop.current.sleep(for: duration)
          }
        }
        await Task.yield()
        sleeper.cancel()
        _ = await sleeper.result
      }
    }
  }

  @Test("a limit of real time may have any length", arguments: [durations[0], durations[2], durations[4]])
  func limits(_ duration: Duration) throws {
    try VirtualTime.onThisThread(realTimeLimit: duration) { time in
      let loop = RunLoop.current
      let port = Port()
      loop.add(port, forMode: .default)
      let other = Thread { loop.perform { loop.stop() } }
      other.start()
      loop.run(mode: .default, for: Duration.seconds(Int64.max))
    }
  }
}

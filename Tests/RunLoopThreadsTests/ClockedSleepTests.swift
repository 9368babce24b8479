// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

/// A sleep whose clock is set by a test.
private final class PlantedSleep: ClockedSleep {
  let left = Box(Duration.seconds(100))
  let timer: Timer

  init(_ timer: Timer) { self.timer = timer }

  func deriveDate() { timer.move(after: left.value) }
}

@Suite("Sleeps by a clock that counts suspended time", .timeLimit(.minutes(20)), .serialized)
struct ClockedSleepTests {
  @Test("after a suspend, a sleep's tick is derived from its clock again")
  func resumes() {
    let log = onVirtualTime { time, loop in
      let fired = Box<[Int64]>([])
      let timer = loop.schedule(in: .seconds(100)) { _ in
        fired.update { $0.append(time.now.nanoseconds / 1_000_000_000) }
      }
      let sleep = PlantedSleep(timer)
      ClockedSleeps.shared.add(sleep)
      // After ten seconds on the loop's clock, the system is suspended for sixty.
      time.at(.seconds(10)) {
        sleep.left.value = .seconds(30)
        ClockedSleeps.shared.clocksMayHaveJumped()
      }
      loop.run(mode: .default, for: Duration.seconds(1000))
      ClockedSleeps.shared.remove(sleep)
      return fired.value
    }
    #expect(log == [40])
  }

  @Test(
    "after a suspend, sleeps by the continuous clock are recomputed; the loops' own clock needs none",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func clocks() async {
    // Needs its own process, in which no other test has such sleeps.
    await #expect(processExitsWith: .success) {
      let suspending = try await isDerivedAgain(.suspending)
      let continuous = try await isDerivedAgain(.continuous)
      #expect(!suspending && continuous)
    }
  }

  @Test("a sleep that outlived its loop is also recomputed after a suspend")
  func orphans() async {
    await withCheckedContinuation { continuation in
      let left = Box(Duration.seconds(100_000))
      OrphanedSleeps.shared.add(until: .after(left.value), deriving: { .after(left.value) }) { continuation.resume() }
      left.value = .zero
      OrphanedSleeps.shared.deriveDates()
    }
  }
}

/// Returns whether the date of a task's sleep on a resident thread is recomputed after a suspend.
private func isDerivedAgain<C: Clock>(_ clock: C) async throws -> Bool where C.Duration == Duration {
  let thread = try ResidentThread(name: "sleeps")
  let sleeper = Task(executorPreference: thread) { try await Task.sleep(for: .seconds(1000), clock: clock) }
  while thread.runLoop.itemCounts.timers == 0 { await Task.yield() }
  let isRegistered = ClockedSleeps.shared.count > 0
  sleeper.cancel()
  _ = await sleeper.result
  thread.stop(.immediately)
  _ = await thread.finished()
  return isRegistered
}

// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore
import RunLoopThreads

/// An actor isolated to a resident thread.
private actor Pinned {
  private let thread: ResidentThread
  private var touched = 0

  init(_ thread: ResidentThread) { self.thread = thread }

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  func touch() { touched += 1 }

  func touch(_ other: Pinned, _ count: Int64) async {
    for _ in 0..<count {
      await other.touch()
      // Work isolated to this actor between two calls, which keeps the compiler from merging the hops.
      touched += 1
    }
  }
}

/// Counts the passes of a loop.
private final class PassCounter: @unchecked Sendable {
  // Sendable: used by the loop's thread only, and read when the loop is idle.
  private(set) var count = 0

  func watch(_ loop: RunLoop) {
    loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in self.count += 1 }, forMode: .default)
  }
}

private func residentThread() -> ResidentThread {
  do {
    return try ResidentThread()
  } catch {
    race_check(false, "\(error)")
    fatalError()
  }
}

/// E1: calls between two actors on one thread.
///
/// None of them may be enqueued on the loop: each one that was would take a pass of its own.
func e1() {
  let thread = residentThread()
  let passes = PassCounter()
  passes.watch(thread.runLoop)
  let (left, right) = (Pinned(thread), Pinned(thread))
  let count = race_scaled(2_000_000, 1000)
  raceTask("actor call", count) { await left.touch(right, $0) }
  race_check(passes.count < 100, "calls were left for the loop")
}

/// E2: from the default executor to an actor on a thread, and back.
func e2() {
  let pinned = Pinned(residentThread())
  raceTask("await there and back", race_scaled(50_000, 100)) { count in
    for _ in 0..<count {
      await pinned.touch()
      onDefaultExecutor()
    }
  }
}

/// E3: jobs of tasks that prefer the thread, which another thread resumes.
func e3() {
  let thread = residentThread()
  raceResumptions { body in Task.detached(executorPreference: thread) { await body() } }
}

/// E4: a task on the thread that yields.
func e4() {
  let thread = residentThread()
  raceTask("yield", race_scaled(1_000_000, 1000)) { count in
    await Task.detached(executorPreference: thread) {
      for _ in 0..<count { await Task.yield() }
    }.value
  }
}

/// E5: children of a task group, on the thread.
func e5() { raceGroups(preferring: residentThread()) }

/// E6: from a task that prefers the thread to an actor on it, and back.
func e6() {
  let thread = residentThread()
  let pinned = Pinned(thread)
  raceTask("call of an actor from a task", race_scaled(200_000, 1000)) { count in
    await Task.detached(executorPreference: thread) {
      for _ in 0..<count {
        await pinned.touch()
        onDefaultExecutor()
      }
    }.value
  }
}

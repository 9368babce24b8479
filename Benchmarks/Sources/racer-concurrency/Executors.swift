// SPDX-License-Identifier: Apache-2.0

import CRace
import Dispatch
import Race

/// An actor as Swift has it by itself.
private actor Ordinary {
  private var touched = 0

  func touch() { touched += 1 }

  func touch(_ other: Ordinary, _ count: Int64) async {
    for _ in 0..<count {
      await other.touch()
      // What needs this actor between two calls: without it, the compiler makes one visit of all of them.
      touched += 1
    }
  }
}

/// A serial dispatch queue as an executor.
private final class QueueExecutor: SerialExecutor, TaskExecutor {
  private let queue = DispatchQueue(label: "race")

  func enqueue(_ job: UnownedJob) {
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

  @_implements(TaskExecutor,enqueue(_:))
  func enqueueTaskJob(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

private actor Queued {
  private let executor: QueueExecutor
  private var touched = 0

  init(_ executor: QueueExecutor) { self.executor = executor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func touch() { touched += 1 }

  func touch(_ other: Queued, _ count: Int64) async {
    for _ in 0..<count {
      await other.touch()
      // What needs this actor between two calls: without it, the compiler makes one visit of all of them.
      touched += 1
    }
  }
}

func e1() {
  let count = race_scaled(2_000_000, 1000)
  let (left, right) = (Ordinary(), Ordinary())
  raceTask("actor call", count) { await left.touch(right, $0) }
  race_set_peer("libdispatch (Swift)")
  let executor = QueueExecutor()
  let (first, second) = (Queued(executor), Queued(executor))
  raceTask("actor call", count) { await first.touch(second, $0) }
}

func e2() {
  let count = race_scaled(50_000, 100)
  // From a detached task to the default executor and back: another detached task, and its value.
  raceTask("await there and back", count) { count in
    for _ in 0..<count { await Task.detached {}.value }
  }
  race_set_peer("libdispatch (Swift)")
  let queued = Queued(QueueExecutor())
  raceTask("await there and back", count) { count in
    for _ in 0..<count {
      await queued.touch()
      onDefaultExecutor()
    }
  }
}

func e3() {
  raceResumptions { body in Task.detached { await body() } }
  race_set_peer("libdispatch (Swift)")
  let executor = QueueExecutor()
  raceResumptions { body in Task.detached(executorPreference: executor) { await body() } }
}

func e4() {
  let count = race_scaled(1_000_000, 1000)
  raceTask("yield", count) { count in
    for _ in 0..<count { await Task.yield() }
  }
  race_set_peer("libdispatch (Swift)")
  let executor = QueueExecutor()
  raceTask("yield", count) { count in
    await Task.detached(executorPreference: executor) {
      for _ in 0..<count { await Task.yield() }
    }.value
  }
}

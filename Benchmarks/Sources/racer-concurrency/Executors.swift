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
      // Needs this actor between two calls: without it, the compiler makes one visit of all of them.
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

/// An actor on an executor.
private actor Placed<Executor: SerialExecutor> {
  private let executor: Executor
  private var touched = 0

  init(_ executor: Executor) { self.executor = executor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func touch() { touched += 1 }

  func touch(_ other: Placed, _ count: Int64) async {
    for _ in 0..<count {
      await other.touch()
      // As above.
      touched += 1
    }
  }
}

/// The peers with an executor of their own, after Swift's default one.
private func raceExecutors(_ run: (_ actors: any SerialExecutor, _ tasks: any TaskExecutor) -> Void) {
  race_set_peer("libdispatch (Swift)")
  let queue = QueueExecutor()
  run(queue, queue)
  race_set_peer("a thread with a queue")
  run(PThreadExecutor(for: .actors), PThreadExecutor(for: .tasks))
}

func e1() {
  let count = race_scaled(2_000_000, 1000)
  let (left, right) = (Ordinary(), Ordinary())
  raceTask("actor call", count) { await left.touch(right, $0) }
  func raceCalls(_ executor: some SerialExecutor) {
    let (left, right) = (Placed(executor), Placed(executor))
    raceTask("actor call", count) { await left.touch(right, $0) }
  }
  raceExecutors { actors, _ in raceCalls(actors) }
}

func e2() {
  let count = race_scaled(50_000, 100)
  // From a detached task to the default executor and back: another detached task, and its value.
  raceTask("await there and back", count) { count in
    for _ in 0..<count { await Task.detached {}.value }
  }
  func raceCalls(_ executor: some SerialExecutor) {
    let actor = Placed(executor)
    raceTask("await there and back", count) { count in
      for _ in 0..<count {
        await actor.touch()
        onDefaultExecutor()
      }
    }
  }
  raceExecutors { actors, _ in raceCalls(actors) }
}

func e3() {
  raceResumptions { body in Task.detached { await body() } }
  raceExecutors { _, tasks in
    raceResumptions { body in Task.detached(executorPreference: tasks) { await body() } }
  }
}

func e4() {
  let count = race_scaled(1_000_000, 1000)
  raceTask("yield", count) { count in
    for _ in 0..<count { await Task.yield() }
  }
  raceExecutors { _, tasks in
    raceTask("yield", count) { count in
      await Task.detached(executorPreference: tasks) {
        for _ in 0..<count { await Task.yield() }
      }.value
    }
  }
}

func e5() {
  raceGroups(preferring: nil)
  raceExecutors { _, tasks in raceGroups(preferring: tasks) }
}

func e6() {
  let count = race_scaled(200_000, 1000)
  let ordinary = Ordinary()
  raceTask("call of an actor from a task", count) { count in
    for _ in 0..<count {
      await ordinary.touch()
      onDefaultExecutor()
    }
  }
  func raceCalls(_ executor: some SerialExecutor, _ tasks: any TaskExecutor) {
    let actor = Placed(executor)
    raceTask("call of an actor from a task", count) { count in
      await Task.detached(executorPreference: tasks) {
        for _ in 0..<count {
          await actor.touch()
          onDefaultExecutor()
        }
      }.value
    }
  }
  raceExecutors { actors, tasks in raceCalls(actors, tasks) }
}

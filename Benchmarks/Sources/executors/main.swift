// SPDX-License-Identifier: Apache-2.0

// A resident thread as an executor, beside executors of a thread with a queue, a lock and a condition, in turn:
//
//     executors [ROUNDS]
//
// It prints the medians of the processor time of each, and the median of the ratios of neighbours.

import CRace
import Race
import RunLoopThreads

/// An actor that lives on an executor.
private actor Pinned {
  private let executor: any SerialExecutor
  private var touched = 0

  init(_ executor: any SerialExecutor) { self.executor = executor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func touch() { touched += 1 }

  func touch(_ other: Pinned, _ count: Int) async {
    for _ in 0..<count {
      await other.touch()
      touched += 1
    }
  }
}

private func nanoseconds(_ count: Int, _ body: () async -> Void) async -> Double {
  let before = race_cpu()
  await body()
  return Double(race_cpu() - before) / Double(count)
}

/// A call between two actors on one executor.
private func actorCall(_ executor: any SerialExecutor) async -> Double {
  let (left, right) = (Pinned(executor), Pinned(executor))
  return await nanoseconds(100_000) { await left.touch(right, 100_000) }
}

/// From the default executor to an actor, and back.
private func hop(_ executor: any SerialExecutor) async -> Double {
  let pinned = Pinned(executor)
  return await nanoseconds(1000) {
    for _ in 0..<1000 {
      await pinned.touch()
      onDefaultExecutor()
    }
  }
}

/// A child of a task group, on the executor.
private func fanOut(_ executor: any TaskExecutor) async -> Double {
  await nanoseconds(100 * 500) {
    await Task(executorPreference: executor) {
      for _ in 0..<100 {
        await withTaskGroup { group in for _ in 0..<500 { group.addTask { onDefaultExecutor() } } }
      }
    }.value
  }
}

/// From a task that prefers an executor to an actor of another, or of the same, and back.
private func call(_ executor: any SerialExecutor, from task: any TaskExecutor) async -> Double {
  let pinned = Pinned(executor)
  return await nanoseconds(1000) {
    await Task(executorPreference: task) {
      for _ in 0..<1000 {
        await pinned.touch()
        onDefaultExecutor()
      }
    }.value
  }
}

private func yield(_ executor: any TaskExecutor) async -> Double {
  await nanoseconds(50_000) {
    await Task(executorPreference: executor) { for _ in 0..<50_000 { await Task.yield() } }.value
  }
}

private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

@concurrent private func measureAll(rounds: Int) async throws {
  let ours = try ResidentThread(name: "executor")
  let (serial, task) = (PThreadSerialExecutor(), PThreadTaskExecutor())
  let rows: [(String, () async -> Double, () async -> Double)] = [
    ("a call between two actors of the thread", { await actorCall(ours) }, { await actorCall(serial) }),
    ("from the default executor to an actor, and back", { await hop(ours) }, { await hop(serial) }),
    ("a child of a task group", { await fanOut(ours) }, { await fanOut(task) }),
    (
      "from a task of the thread to an actor of it, and back", { await call(ours, from: ours) },
      { await call(serial, from: task) }
    ),
    ("a yield", { await yield(ours) }, { await yield(task) }),
  ]
  print("| | a resident thread, ns | a thread with a queue, ns | ratio |\n|---|---|---|---|")
  for (name, first, second) in rows {
    var (one, other): ([Double], [Double]) = ([], [])
    for round in 0...rounds {
      // Each begins in turn; the first round warms up.
      let isFirst = round % 2 == 0
      let a = await isFirst ? first() : second()
      let b = await isFirst ? second() : first()
      guard round > 0 else { continue }
      one.append(isFirst ? a : b)
      other.append(isFirst ? b : a)
    }
    let ratio = median(zip(one, other).map { $0 / $1 })
    func text(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
    print("| \(name) | \(text(median(one))) | \(text(median(other))) | \((ratio * 100).rounded() / 100) |")
  }
  ours.stop()
}

try await measureAll(rounds: CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 21)

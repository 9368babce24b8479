// SPDX-License-Identifier: Apache-2.0

import CRace
import Synchronization

/// Runs `body` in a detached task with a twentieth of `count`, then with `count`, and reports the time of the second
/// run for each.
public func raceTask(_ metric: String, _ count: Int64, _ body: @escaping @Sendable (Int64) async -> Void) {
  for (share, isMeasured) in [(count / 20 + 1, false), (count, true)] {
    let gate = Gate()
    let (before, cpu) = (race_now(), race_cpu())
    Task.detached {
      await body(share)
      gate.open()
    }
    gate.wait()
    guard isMeasured else { continue }
    race_report(metric, Double(race_now() - before) / Double(count), "ns")
    race_report("processor time", Double(race_cpu() - cpu) / Double(count), "ns")
  }
}

/// Work on the default executor between two hops, which keeps the compiler from merging them.
@inline(never)
public func onDefaultExecutor() { race_run_one() }

/// E3: jobs, in rounds of 100,000 suspended tasks that another thread resumes.
///
/// `start` starts a task on the executor under test. Each resumption is one job, which counts itself.
public func raceResumptions(_ start: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void) {
  let rounds = race_scaled(4, 1)
  let size = Int(race_scaled(100_000, 1000))
  var nanoseconds: Int64 = 0
  var cpu: Int64 = 0
  for round in 0...rounds {
    let waiting = Waiting(size)
    for _ in 0..<size { start { await waiting.wait() } }
    let continuations = waiting.suspended.take()
    let (before, cpuBefore) = (race_now(), race_cpu())
    for continuation in continuations { continuation.resume() }
    waiting.over.wait()
    guard round > 0 else { continue }
    nanoseconds += race_now() - before
    cpu += race_cpu() - cpuBefore
  }
  let count = Double(rounds) * Double(size)
  race_report("job, resumed by another thread", Double(nanoseconds) / count, "ns")
  race_report("processor time", Double(cpu) / count, "ns")
}

/// The continuations of suspended tasks.
private final class Waiting: Sendable {
  let suspended = Handed<[UnsafeContinuation<Void, Never>]>()
  let over = Gate()
  private let size: Int
  private let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
  private let ran = Atomic<Int>(0)

  init(_ size: Int) { self.size = size }

  func wait() async {
    await withUnsafeContinuation { continuation in
      let all = continuations.withLock { all -> [UnsafeContinuation<Void, Never>]? in
        all.append(continuation)
        return all.count == size ? all : nil
      }
      if let all { suspended.give(all) }
    }
    if ran.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue == size { over.open() }
  }
}

/// E5: children of task groups, 500 in each, which run on an executor.
public func raceGroups(preferring executor: (any TaskExecutor)?) {
  let size: Int64 = 500
  raceTask("child of a task group", race_scaled(200_000, 1000)) { count in
    await Task.detached(executorPreference: executor) {
      for begin in stride(from: 0, to: count, by: Int(size)) {
        await withTaskGroup { group in
          for _ in begin..<min(count, begin + size) { group.addTask { onDefaultExecutor() } }
        }
      }
    }.value
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("Random programs of asynchronous transactions", .timeLimit(.minutes(20)))
struct AsyncTransactionStressTests {
  /// A transaction on which three threads perform random operations.
  private final class Program: Sendable {
    let transaction: Box<AsyncTransaction?>
    private let threadsLeft = Counter()

    init(_ group: AsyncTransactionGroup, _ workers: WorkerPool) {
      transaction = Box(AsyncTransaction(group: group, workers: workers))
    }

    func leave() -> Bool { threadsLeft.add() == 3 }
  }

  private struct Failure: Error {}

  private struct Counts: Sendable {
    let added = Counter()
    let addedTwice = Counter()
    let runs = Counter()
    let completions = Counter()
    let successes = Counter()
    let successesAfterCancel = Counter()
    let disorders = Counter()
  }

  @Test("in 10,000 programs on three threads every completion is called once, and no work runs twice")
  func programs() async throws {
    let counts = Counts()
    let owners = try (0..<2).map { try ResidentThread(name: "owner \($0)") }
    let pool = WorkerPool(name: "pool", threads: 3)
    let programs = (0..<10_000).map { Program(.of(owners[$0 % 2].runLoop), pool) }
    let threads = (0..<3).map { thread in
      startThread {
        for (index, program) in programs.enumerated() {
          var random = SplitMix64(seed: UInt64(index * 3 + thread))
          for _ in 0..<1 + random.below(4) {
            program.transaction.value.map { act(on: $0, &random, counts) }
          }
          guard program.leave() else { continue }
          // Some are committed, some are cancelled, and the others are released.
          switch random.below(3) {
          case 0: try? program.transaction.value?.tryCommit()
          case 1: program.transaction.value?.cancel()
          default: break
          }
          program.transaction.value = nil
        }
      }
    }
    for thread in threads { thread.result() }
    waitUntil { counts.completions.value == counts.added.value }
    for owner in owners {
      let group = AsyncTransactionGroup.of(owner.runLoop)
      waitUntil { group.countUnderWay == 0 }
      owner.stop()
      _ = await owner.finished()
    }
    #expect(counts.completions.value == counts.added.value && counts.added.value > 10_000)
    #expect(counts.addedTwice.value == 0 && counts.disorders.value == 0 && counts.successesAfterCancel.value == 0)
    #expect(counts.successes.value > 1000 && counts.runs.value >= counts.successes.value)
  }

  private func act(on transaction: AsyncTransaction, _ random: inout SplitMix64, _ counts: Counts) {
    switch random.below(8) {
    case 0: try? transaction.tryCommit()
    case 1:
      transaction.cancel()
      // From here on, completions have no result.
      counts.added.add()
      transaction.add { _ in
      } completion: { result in
        counts.completions.add()
        if (try? result.get()) != nil { counts.successesAfterCancel.add() }
      }
    case 2:
      let count = random.below(200)
      let runs = Counter()
      counts.added.add()
      transaction.add(count: count, priority: random.below(3)) { index, _ in
        runs.add()
        return index
      } completion: { results in
        counts.completions.add()
        let values = results.compactMap { $0 }
        if results.count != count || (!values.isEmpty && values != Array(0..<count)) { counts.disorders.add() }
        if !values.isEmpty, runs.value != count { counts.addedTwice.add() }
      }
    default:
      let runs = Counter()
      let fails = random.oneIn(4)
      counts.added.add()
      transaction.add(priority: random.below(3)) { _ in
        counts.runs.add()
        if runs.add() > 1 { counts.addedTwice.add() }
        if fails { throw Failure() }
        return 1
      } completion: { result in
        counts.completions.add()
        switch result {
        case .success:
          counts.successes.add()
          if runs.value != 1 { counts.disorders.add() }
        case .failure(let error):
          if error is Failure, runs.value != 1 { counts.disorders.add() }
        }
      }
    }
  }
}

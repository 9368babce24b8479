// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions
import TestSupport
import Testing

@testable import RunLoopDisplay

@Suite("Completions on the main actor", .timeLimit(.minutes(20)))
@MainActor
struct MainActorCompletionTests {
  private struct Failure: Error {}

  @Test("completions on the main actor change views, in the order in which they were added")
  func order() throws {
    try NodeStage.perform { stage in
      let label = Label(frame: Rect(x: 0, y: 0, width: 12, height: 1))
      stage.window.addSubview(label)
      let transaction = AsyncTransaction(group: stage.group, workers: stage.workers)
      transaction.add { _ in
        "a"
      } completion: { @MainActor result in
        label.text += (try? result.get()) ?? "?"
      }
      transaction.add(count: 3) { index, _ in
        index
      } completion: { @MainActor results in
        label.text += results.map { "\($0 ?? -1)" }.joined()
      }
      transaction.add { _ -> Int in
        throw Failure()
      } completion: { @MainActor result in
        if case .failure(is Failure) = result { label.text += "!" }
      }
      transaction.commit()
      try stage.turns { transaction.state == .complete }
      try stage.turn()
      #expect(stage.text == "a012!")
    }
  }

  @Test("a completion not bound to the main actor runs on its group's loop, whichever that is")
  nonisolated func otherLoop() {
    let log = Log()
    onNewThread {
      let thread = RunLoop.callingThreadID
      let transaction = AsyncTransaction(workers: WorkerPool(threads: 1))
      transaction.add { _ in
        1
      } completion: { result in
        log.write("\((try? result.get()) ?? 0) \(RunLoop.callingThreadID == thread)")
      }
      transaction.add(count: 2) { index, _ in
        index
      } completion: { results in
        log.write("\(results.count) \(RunLoop.callingThreadID == thread)")
      }
      transaction.commit()
      while RunLoop.current.run(mode: .default, for: .seconds(10)) != .finished {}
    }
    #expect(log.text == "1 true 2 true")
  }

  @Test("completions of a cancelled transaction report that, on the main actor too")
  func cancelled() throws {
    try NodeStage.perform { stage in
      let log = stage.log
      let transaction = AsyncTransaction(group: stage.group, workers: stage.workers)
      transaction.add { _ in
        1
      } completion: { @MainActor result in
        log.write(result.failure == .cancelled ? "cancelled" : "\(result)")
      }
      transaction.add(count: 2) { index, _ in
        index
      } completion: { @MainActor results in
        log.write("\(results.map { $0 == nil ? "nil" : "value" })")
      }
      transaction.cancel()
      try stage.turns { transaction.state == .complete }
      #expect(log.text == #"cancelled ["nil", "nil"]"#)
    }
  }
}

extension Result where Failure == any Error {
  fileprivate var failure: AsyncTransactionError? {
    if case .failure(let error) = self { error as? AsyncTransactionError } else { nil }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("An asynchronous transaction", .timeLimit(.minutes(20)))
struct AsyncTransactionTests {
  struct Failure: Error, Equatable {}

  /// Runs the loop until nothing keeps it alive, which includes transactions in progress.
  private func runLoop() { while RunLoop.current.run(mode: .default, for: .unlimited) != .finished {} }

  private func text(_ result: Result<Int, any Error>) -> String {
    switch result {
    case .success(let value): "\(value)"
    case .failure(let error as AsyncTransactionError): "\(error)"
    case .failure(let error): "\(type(of: error))"
    }
  }

  @Test("operations run on workers, and completions follow on the loop's thread in the order of their addition")
  func order() {
    let log = Log()
    onNewThread {
      let thread = RunLoop.callingThreadID
      let transaction = AsyncTransaction(workers: WorkerPool(threads: 3))
      for number in 0..<20 {
        transaction.add(priority: number % 3) { _ in
          #expect(RunLoop.callingThreadID != thread)
          return number
        } completion: {
          #expect(RunLoop.callingThreadID == thread)
          log.write(text($0))
        }
      }
      #expect(transaction.state == .open)
      transaction.commit()
      #expect(log.text == "")
      runLoop()
      #expect(transaction.state == .complete)
      #expect(AsyncTransactionGroup.current.countUnderWay == 0)
    }
    #expect(log.text == (0..<20).map(String.init).joined(separator: " "))
  }

  @Test("work that throws reports its error, and other work its results")
  func throwing() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      transaction.add { _ in
        1
      } completion: {
        log.write(text($0))
      }
      transaction.add { _ in
        throw Failure()
      } completion: {
        log.write(text($0))
      }
      transaction.add { _ in
        3
      } completion: {
        log.write(text($0))
      }
      transaction.commit()
      runLoop()
    }
    #expect(log.text == "1 Failure 3")
  }

  @Test(
    "counted work runs once per number on workers, and has one completion", arguments: [0, 1, 63, 64, 65, 1000])
  func counted(count: Int) {
    let runs = Counter()
    let completions = Counter()
    onNewThread {
      let transaction = AsyncTransaction(workers: WorkerPool(threads: 4))
      transaction.add(count: count) { index, _ in
        runs.add()
        return index * index
      } completion: { results in
        completions.add()
        #expect(results == ContiguousArray((0..<count).map { $0 * $0 }))
      }
      transaction.commit()
      runLoop()
    }
    #expect(runs.value == count && completions.value == 1)
  }

  @Test("a count below zero counts as zero")
  func negativeCount() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      transaction.add(count: .min) { index, _ in
        index
      } completion: {
        log.write("\($0.count)")
      }
      transaction.commit()
      runLoop()
    }
    #expect(log.text == "0")
  }

  @Test("a transaction without operations completes at once")
  func empty() async {
    let loop = onNewThread { RunLoop.current }
    for group in [AsyncTransactionGroup.of(loop), .main] {
      let transaction = AsyncTransaction(group: group)
      transaction.commit()
      #expect(transaction.state == .complete)
      #expect(await transaction.finished() == .completed)
    }
  }

  @Test("a transaction with many operations wakes the loop once and makes one call-out")
  func oneWake() {
    let log = Log()
    onNewThread {
      let hold = Hold()
      let pool = WorkerPool(threads: 1)
      let blocker = AsyncTransaction(workers: pool)
      blocker.add { _ in
        hold.occupy()
      } completion: { _ in
      }
      let transaction = AsyncTransaction(workers: pool)
      for number in 0..<5 {
        transaction.add { _ in
          number
        } completion: {
          log.write(text($0))
        }
      }
      RunLoop.current.add(
        RunLoop.Observer(activities: .afterWaiting) { _, _ in log.write("AW") }, forMode: .default)
      transaction.add { _ in
      } completion: { _ in
        RunLoop.current.stop()
      }
      blocker.commit()
      hold.begun.wait()
      transaction.commit()
      RunLoop.current.perform { hold.released.open() }
      runLoop()
    }
    // The blocker's completion may arrive in a separate pass.
    #expect(log.text.contains("0 1 2 3 4"))
    #expect(log.count(of: "AW") <= 4, "\(log.text)")
  }

  @Test("higher priorities run first, and equal ones in the order of their commits")
  func priorities() {
    let log = Log()
    onNewThread {
      let hold = Hold()
      let pool = WorkerPool(threads: 1)
      let blocker = AsyncTransaction(workers: pool)
      blocker.add { _ in
        hold.occupy()
      } completion: { _ in
      }
      blocker.commit()
      hold.begun.wait()
      for (name, priorities) in [("a", [0, 2, -1]), ("b", [2, 0])] {
        let transaction = AsyncTransaction(workers: pool)
        for priority in priorities {
          transaction.add(priority: priority) { _ in
            log.write("\(name)\(priority)")
          } completion: { _ in
          }
        }
        transaction.commit()
      }
      hold.released.open()
      runLoop()
    }
    #expect(log.text == "a2 b2 a0 b0 a-1")
  }

  @Test("transactions that become ready during a completion's run of the loop are delivered there")
  func nested() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      let isDelivered = Box(false)
      let outer = AsyncTransaction()
      outer.add { _ in
        1
      } completion: { result in
        log.write(text(result))
        let inner = AsyncTransaction()
        inner.add { _ in
          5
        } completion: {
          log.write(text($0))
          isDelivered.value = true
        }
        inner.commit()
        while !isDelivered.value { loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true) }
        log.write("returned")
      }
      outer.add { _ in
        2
      } completion: {
        log.write(text($0))
      }
      outer.commit()
      runLoop()
    }
    #expect(log.text == "1 5 returned 2")
  }

  @Test("a transaction in progress keeps the loop alive in its common modes, and no longer")
  func keepsAlive() {
    onNewThread {
      let loop = RunLoop.current
      let transaction = AsyncTransaction()
      let hold = Hold()
      transaction.add { _ in
        hold.occupy()
      } completion: { _ in
      }
      #expect(loop.run(mode: .default, for: 0) == .finished)
      transaction.commit()
      #expect(loop.run(mode: .default, for: 0) == .timedOut)
      hold.released.open()
      runLoop()
      #expect(transaction.state == .complete)
    }
  }

  @Test("the group commits the turn's transaction before the wait, after a commit and before the pool drains")
  func ofTurn() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      TurnPool.install(in: loop)
      let pipeline = CommitPipeline(loop: loop)
      pipeline.add(.init(name: "commit") { log.write("commit") })
      let transaction = Box<AsyncTransaction?>(nil)
      pipeline.whenCommitted { _ in log.write("\(transaction.value?.state == .open)") }
      loop.perform {
        pipeline.setNeedsCommit()
        let group = AsyncTransactionGroup.current
        #expect(group.transaction === group.transaction)
        transaction.value = group.transaction
        group.transaction.add { _ in
          1
        } completion: { _ in
          log.write("completion")
          #expect(group.transaction !== transaction.value)
        }
        TurnPool.current?.onEndOfTurn { log.write("\(transaction.value?.state == .open) pool") }
      }
      runLoop()
      #expect(transaction.value?.state == .complete)
    }
    #expect(log.text.hasPrefix("commit true false pool") && log.text.hasSuffix("completion"), "\(log.text)")
  }

  @Test("after a manual commit of the turn's transaction, another one follows")
  func ofTurnByHand() {
    onNewThread {
      let group = AsyncTransactionGroup.current
      let first = group.transaction
      first.add { _ in
      } completion: { _ in
      }
      #expect(group.commit() && first.state == .committed && !group.commit())
      let second = group.transaction
      #expect(second !== first)
      second.cancel()
      #expect(group.transaction !== second)
      runLoop()
    }
  }

  @Test("each loop has one transaction group, shared by all")
  func groups() throws {
    let thread = try ResidentThread(name: "owner")
    let group = AsyncTransactionGroup.of(thread.runLoop)
    #expect(group === AsyncTransactionGroup.of(thread.runLoop) && group.loop === thread.runLoop)
    let itsOwn = try thread.performAndWait { AsyncTransactionGroup.current }
    #expect(itsOwn === group)
    #expect(onNewThread { AsyncTransactionGroup.current } !== group)
    #expect(AsyncTransactionGroup.main.loop === RunLoop.main)
    thread.stop()
    try thread.join()
  }

  @Test("a pool never exceeds its thread limit, and is released when its last transaction completes")
  func threads() {
    let names = Box<Set<Int32>>([])
    let pool = Box(WeakBox<WorkerPool>(nil))
    onNewThread {
      let workers = WorkerPool(name: "few", threads: 2)
      pool.value = WeakBox(workers)
      #expect(workers.threadCount == 0)
      let transaction = AsyncTransaction(workers: workers)
      transaction.add(count: 640) { _, _ in
        _ = names.update { $0.insert(RunLoop.callingThreadID) }
      } completion: { _ in
      }
      transaction.commit()
      runLoop()
      #expect((1...2).contains(workers.threadCount))
    }
    #expect((1...2).contains(names.value.count))
    waitUntil { pool.value.object == nil }
    #expect(WorkerPool(threads: 0).threadCount == 0)
  }
}

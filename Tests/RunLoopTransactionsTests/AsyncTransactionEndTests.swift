// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("Every completion of an asynchronous transaction is called once", .timeLimit(.minutes(20)))
struct AsyncTransactionEndTests {
  private func runLoop() { while RunLoop.current.run(mode: .default, for: .unlimited) != .finished {} }

  /// Logs a result as a letter: the value, or the failure.
  private func note(_ log: Log, _ name: String = "") -> @Sendable (Result<Int, any Error>) -> Void {
    { result in
      switch result {
      case .success(let value): log.write("\(name)\(value)")
      case .failure(AsyncTransactionError.cancelled): log.write("\(name)cancelled")
      case .failure(AsyncTransactionError.notOpen(let state)): log.write("\(name)notOpen:\(state)")
      case .failure(AsyncTransactionError.droppedWhileOpen): log.write("\(name)dropped")
      case .failure(AsyncTransactionError.loopHasEnded): log.write("\(name)loopHasEnded")
      case .failure(AsyncTransactionError.workerHasEnded): log.write("\(name)workerHasEnded")
      case .failure(let error): log.write("\(name)\(type(of: error))")
      }
    }
  }

  @Test("cancelling an open transaction runs nothing, and each completion reports it on the loop's thread")
  func cancelOpen() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      let runs = Counter()
      transaction.add { _ in
        runs.add()
      } completion: {
        note(log)($0)
      }
      transaction.add(count: 3) { index, _ in
        runs.add() + index
      } completion: {
        log.write("\($0.map { $0 ?? -1 })")
      }
      transaction.cancel()
      #expect(transaction.state == .cancelled && log.text == "")
      transaction.cancel()
      runLoop()
      #expect(runs.value == 0 && transaction.state == .complete)
    }
    #expect(log.text == "cancelled [-1, -1, -1]")
  }

  @Test("cancelled during endless work, a transaction's completions do not wait for it")
  func cancelEndless() {
    let log = Log()
    let hold = Hold()
    onNewThread {
      let transaction = AsyncTransaction(workers: WorkerPool(threads: 1))
      transaction.add { cancellation in
        hold.occupy()
        log.write("\(cancellation.isCancelled)")
        #expect(throws: AsyncTransactionError.cancelled) { try cancellation.check() }
        return 1
      } completion: {
        note(log, "first:")($0)
      }
      transaction.add { _ in
        2
      } completion: {
        note(log, "second:")($0)
      }
      transaction.commit()
      hold.begun.wait()
      transaction.cancel()
      runLoop()
      #expect(transaction.state == .complete)
    }
    #expect(log.text == "first:cancelled second:cancelled")
    hold.released.open()
    waitUntil { log.count(of: "true") == 1 }
    #expect(log.text == "first:cancelled second:cancelled true")
  }

  @Test("cancelled after its work or within a completion, a transaction reports it to the remaining completions")
  func cancelLate() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      let ran = Latch()
      transaction.add { _ in
        ran.open()
        return 1
      } completion: {
        note(log)($0)
      }
      transaction.commit()
      ran.wait()
      transaction.cancel()
      runLoop()
      let other = AsyncTransaction()
      other.add { _ in
        1
      } completion: {
        note(log)($0)
        other.cancel()
      }
      other.add { _ in
        2
      } completion: {
        note(log)($0)
      }
      other.add(count: 2) { index, _ in
        index
      } completion: {
        log.write("\($0.map { $0 ?? -1 })")
      }
      other.commit()
      runLoop()
    }
    #expect(log.text == "cancelled 1 cancelled [-1, -1]")
  }

  @Test("counted work is cancelled between two numbers")
  func cancelCounted() {
    let log = Log()
    let runs = Counter()
    onNewThread {
      let begun = Latch()
      let released = Latch()
      let transaction = AsyncTransaction(workers: WorkerPool(threads: 1))
      transaction.add(count: 1000) { index, _ in
        if runs.add() == 10 {
          begun.open()
          released.wait()
        }
        return index
      } completion: {
        log.write("\($0.count { $0 == nil })")
      }
      transaction.commit()
      begun.wait()
      transaction.cancel()
      released.open()
      runLoop()
    }
    #expect(log.text == "1000" && runs.value == 10)
  }

  @Test("work added to a transaction that is no longer open does not run, and reports the state")
  func addLate() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      let hold = Hold()
      transaction.add { _ in
        hold.occupy()
      } completion: { _ in
        log.write("first")
      }
      transaction.commit()
      transaction.add { _ in
        1
      } completion: {
        note(log)($0)
      }
      transaction.add(count: 2) { index, _ in
        index
      } completion: {
        log.write("\($0.map { $0 ?? -1 })")
      }
      RunLoop.current.run(mode: .default, for: 0)
      hold.released.open()
      runLoop()
      transaction.add { _ in
        1
      } completion: {
        note(log)($0)
      }
      runLoop()
    }
    #expect(log.text == "notOpen:committed [-1, -1] first notOpen:complete")
  }

  @Test("a second commit has no effect; it throws the state if it can, and is counted otherwise")
  func commitTwice() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      transaction.add { _ in
        1
      } completion: {
        note(log)($0)
      }
      transaction.commit()
      #expect(throws: AsyncTransactionError.notOpen(.committed)) { try transaction.tryCommit() }
      let reports = RunLoop.diagnosticCount
      transaction.commit()
      #expect(RunLoop.diagnosticCount > reports)
      runLoop()
      #expect(throws: AsyncTransactionError.notOpen(.complete)) { try transaction.tryCommit() }
      let cancelled = AsyncTransaction()
      cancelled.cancel()
      #expect(throws: AsyncTransactionError.notOpen(.complete)) { try cancelled.tryCommit() }
    }
    #expect(log.text == "1")
  }

  @Test("releasing an open transaction runs nothing, and each completion reports it on the loop's thread")
  func dropped() {
    let log = Log()
    onNewThread {
      let runs = Counter()
      let transaction = Box<AsyncTransaction?>(AsyncTransaction())
      transaction.value?.add { _ in
        runs.add()
      } completion: {
        note(log)($0)
      }
      transaction.value = nil
      #expect(log.text == "")
      runLoop()
      #expect(runs.value == 0)
    }
    #expect(log.text == "dropped")
  }

  @Test("a transaction released after its commit continues")
  func released() {
    let log = Log()
    onNewThread {
      let transaction = Box<AsyncTransaction?>(AsyncTransaction())
      transaction.value?.add { _ in
        1
      } completion: {
        note(log)($0)
      }
      transaction.value?.commit()
      transaction.value = nil
      runLoop()
    }
    #expect(log.text == "1")
  }

  @Test("the loop's end calls the remaining completions in order on its thread, and later ones at once")
  func endOfLoop() {
    let log = Log()
    let hold = Hold()
    let transactions = onNewThread {
      let thread = RunLoop.callingThreadID
      let running = AsyncTransaction(workers: WorkerPool(threads: 1))
      running.add { _ in
        hold.occupy()
        return 1
      } completion: {
        #expect(RunLoop.callingThreadID == thread)
        note(log, "running:")($0)
      }
      running.add { _ in
        2
      } completion: {
        note(log, "waiting:")($0)
      }
      running.commit()
      hold.begun.wait()
      let cancelled = AsyncTransaction()
      cancelled.add { _ in
        3
      } completion: {
        note(log, "cancelled:")($0)
      }
      cancelled.cancel()
      AsyncTransactionGroup.current.transaction.add { _ in
        4
      } completion: {
        note(log, "turn:")($0)
      }
      let open = AsyncTransaction()
      open.add { _ in
        5
      } completion: {
        note(log, "open:")($0)
      }
      return [running, cancelled, open]
    }
    #expect(
      log.text == "running:loopHasEnded waiting:loopHasEnded cancelled:cancelled turn:loopHasEnded", "\(log.text)")
    hold.released.open()
    transactions[2].add { _ in
      6
    } completion: {
      note(log, "late:")($0)
    }
    transactions[2].commit()
    #expect(log.text.hasSuffix("turn:loopHasEnded open:loopHasEnded late:loopHasEnded"), "\(log.text)")
    transactions[2].add { _ in
      7
    } completion: {
      note(log, "later:")($0)
    }
    #expect(log.text.hasSuffix("later:notOpen:complete"), "\(log.text)")
    #expect(transactions.allSatisfy { $0.state == .complete })
  }

  @Test("a thread that ends inside a completion leaves no completion uncalled")
  func exitInCompletion() throws {
    let log = Log()
    let thread = Thread {
      let transaction = AsyncTransaction()
      transaction.add { _ in
        1
      } completion: {
        note(log)($0)
        Thread.exit()
      }
      transaction.add { _ in
        2
      } completion: {
        note(log)($0)
      }
      transaction.commit()
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    try thread.tryStart()
    try thread.join()
    #expect(log.text == "1 loopHasEnded")
  }

  @Test("work that ends its worker's thread is reported, and the rest runs on another worker")
  func exitInWork() {
    let log = Log()
    onNewThread {
      let pool = WorkerPool(threads: 1)
      let transaction = AsyncTransaction(workers: pool)
      transaction.add { _ -> Int in
        Thread.exit()
      } completion: {
        note(log)($0)
      }
      transaction.add { _ in
        2
      } completion: {
        note(log)($0)
      }
      transaction.add(count: 65) { index, _ in
        if index == 3 { Thread.exit() }
        return index
      } completion: {
        log.write("\($0.count { $0 == nil })")
      }
      transaction.add { _ in
        3
      } completion: {
        note(log)($0)
      }
      transaction.commit()
      runLoop()
      #expect(pool.threadCount == 1)
    }
    #expect(log.text == "workerHasEnded 2 65 3")
  }

  @Test("a task waits for the last completion")
  func finished() async throws {
    let thread = try ResidentThread(name: "completes")
    let group = AsyncTransactionGroup.of(thread.runLoop)
    let completions = Counter()
    for end in 0..<3 {
      let transaction = AsyncTransaction(group: group)
      for _ in 0..<3 {
        transaction.add { _ in
        } completion: { _ in
          completions.add()
        }
      }
      let waiter = Task { await transaction.finished() }
      switch end {
      case 0: transaction.commit()
      case 1: transaction.cancel()
      default:
        transaction.commit()
        _ = await transaction.finished()
        transaction.cancel()
      }
      #expect(await waiter.value == (end == 1 ? .cancelled : .completed))
      #expect(await transaction.finished() == (end == 1 ? .cancelled : .completed))
      #expect(completions.value == 3 * (end + 1))
    }
    thread.stop()
    _ = await thread.finished()
  }

  @Test(
    "a forked child has its own shared workers, and cannot use its parent's other pools",
    .disabled(if: isSanitizedForThreads))
  func fork() async {
    // Needs its own process, because a fork amid the threads of other tests could leave their locks locked in the
    // child.
    await #expect(processExitsWith: .success) {
      let pool = WorkerPool()
      #expect(sum(.shared) == 7 && sum(pool) == 7)
      #expect(inForkedChild { sum(.shared) } == .exited(7))
      #expect(inForkedChild { sum(pool) }.isTrap)
    }
  }

  @Test("closures and results are released as soon as they are no longer needed")
  func releases() {
    let log = Log()
    onNewThread {
      let transaction = AsyncTransaction()
      let (work, completion) = (Token(log, "work"), Token(log, "completion"))
      transaction.add { _ in
        work.touch()
        return Token(log, "result")
      } completion: { _ in
        completion.touch()
        log.write("called")
      }
      transaction.commit()
      runLoop()
      withExtendedLifetime(transaction) {}
    }
    let expected = ["called", "result", "work", "completion"]
    waitUntil { expected.allSatisfy { log.count(of: $0) > 0 } }
    #expect(expected.allSatisfy { log.count(of: $0) == 1 }, "\(log.text)")
  }
}

/// Runs one operation on a new thread and returns the result of its completion, which is seven.
private func sum(_ workers: WorkerPool) -> Int32 {
  onNewThread {
    let sum = Counter()
    let transaction = AsyncTransaction(workers: workers)
    transaction.add { _ in
      7
    } completion: { result in
      sum.add((try? result.get()) ?? 0)
    }
    transaction.commit()
    while RunLoop.current.run(mode: .default, for: .unlimited) != .finished {}
    return Int32(sum.value)
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import RunLoopTransactions

final class Transactions: Sendable {
  private let worker: ResidentThread
  private var loop: RunLoop { worker.runLoop }

  init(on worker: ResidentThread) { self.worker = worker }

  func run() {
    stage()
    committed()
    flushed()
    endOfTurn()
    queue()
    completion()
    completionOfMany()
  }

  /// Marks a pipeline of its own, whose observer therefore calls nothing else.
  private func commit(_ pipeline: CommitPipeline, _ done: Flag) {
    pipeline.setNeedsCommit()
    done.wait()
    try? worker.performAndWait { pipeline.invalidate() }
  }

  private func stage() {
    let done = Flag()
    let pipeline = CommitPipeline(loop: loop)
    pipeline.add(.init(name: "stage") { done.set() })
    commit(pipeline, done)
  }

  private func committed() {
    let done = Flag()
    let pipeline = CommitPipeline(loop: loop)
    pipeline.whenCommitted { _ in done.set() }
    commit(pipeline, done)
  }

  /// Commits from a user's function must not rename the user's call-out.
  private func flushed() {
    let pipeline = CommitPipeline(loop: loop)
    addStage(to: pipeline)
    let done = Flag()
    loop.perform {
      pipeline.setNeedsCommit()
      pipeline.flush()
      pipeline.invalidate()
      done.set()
    }
    done.wait()
  }

  private func addStage(to pipeline: CommitPipeline) { pipeline.add(.init(name: "flushed") { _ = pipeline }) }

  private func endOfTurn() {
    // On the loop's thread, so that the pool is opened immediately.
    try? worker.performAndWait { TurnPool.install(in: RunLoop.current) }
    let done = Flag()
    loop.perform { TurnPool.current?.onEndOfTurn { done.set() } }
    done.wait()
  }

  private func queue() {
    let done = Flag()
    let queue = RunLoopQueue<Int>(loop: loop) { _, _ in done.set() }
    queue.enqueue(1)
    withExtendedLifetime(queue) { done.wait() }
  }

  private func completion() {
    let done = Flag()
    let transaction = AsyncTransaction(group: .of(loop))
    transaction.add { _ in
      1
    } completion: { _ in
      done.set()
    }
    transaction.commit()
    done.wait()
  }

  private func completionOfMany() {
    let done = Flag()
    let transaction = AsyncTransaction(group: .of(loop))
    transaction.add(count: 3) { number, _ in
      number
    } completion: { _ in
      done.set()
    }
    transaction.commit()
    done.wait()
  }
}

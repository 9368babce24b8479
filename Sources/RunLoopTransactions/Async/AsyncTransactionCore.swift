// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// State shared by a transaction, its group and its workers, so that they do not retain the transaction.
///
/// **Locks.** This lock is acquired before the group's, and the group's before those of the loop. The pool's lock
/// is never held together with another one.
final class AsyncTransactionCore: Deliverable, @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private let group: AsyncTransactionGroup
  private let workers: WorkerPool
  // Relaxed: an operation that does not see the flag yet does needless work, but its outcome is decided under the lock.
  private let cancelled = Atomic<Bool>(false)
  private let lock = Lock()
  @exclusivity(unchecked) private var lifecycle = AsyncTransactionState()
  /// The operations whose completions have not been called, in the order in which they were added.
  @exclusivity(unchecked) private var operations: ContiguousArray<(any AsyncOperation)?> = []
  @exclusivity(unchecked) private var delivered = 0
  @exclusivity(unchecked) private var waiting: [CheckedContinuation<AsyncTransaction.Outcome, Never>] = []

  init(group: AsyncTransactionGroup, workers: WorkerPool) {
    self.group = group
    self.workers = workers
  }

  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  var state: AsyncTransaction.State { lock.withLock { lifecycle.visible } }

  func add(_ operation: some AsyncOperation) {
    lock.lock()
    if lifecycle.acceptsOperations {
      operations.append(operation)
      lock.unlock()
      return
    }
    let error = AsyncTransactionError.notOpen(lifecycle.visible)
    lock.unlock()
    let rejected = RejectedOperation(operation, error, group)
    if group.begin(rejected) { group.isReady(rejected) } else { rejected.deliver(isCallOut: false) }
  }

  func commit() throws(AsyncTransactionError) {
    lock.lock()
    let state = lifecycle.visible
    let pieces = operations.reduce(0) { $0 + ($1?.pieceCount ?? 0) }
    let action = lifecycle.commit(pieces: pieces)
    guard action != .reject else {
      lock.unlock()
      throw .notOpen(state)
    }
    let operations = operations
    // Without completions, the group has nothing to call.
    let hasBegun = operations.isEmpty || group.begin(self)
    lock.unlock()
    guard hasBegun else { return loopDidEnd() }
    if action == .start {
      workers.enqueue(operations, of: self)
    } else {
      becomeReady(operations.isEmpty)
    }
  }

  private func becomeReady(_ isEmpty: Bool) { if isEmpty { deliver(isCallOut: false) } else { group.isReady(self) } }

  func cancel() { stop { $0.cancel(hasUndelivered: $1) } }

  func drop() { stop { lifecycle, _ in lifecycle.drop() } }

  func fail(_ error: AsyncTransactionError) { stop { lifecycle, _ in lifecycle.fail(error) } }

  /// Applies an event that stops the transaction, and delivers the failure if the state requires it.
  private func stop(_ event: (inout AsyncTransactionState, _ hasUndelivered: Bool) -> AsyncTransactionState.Action) {
    lock.lock()
    let isOpen = lifecycle.phase == .open
    let action = event(&lifecycle, delivered < operations.count)
    if lifecycle.failure != nil { cancelled.store(true, ordering: .relaxed) }
    let isEmpty = operations.isEmpty
    let hasBegun = action != .deliver || !isOpen || isEmpty || group.begin(self)
    lock.unlock()
    guard action == .deliver else { return }
    if hasBegun { becomeReady(isEmpty) } else { loopDidEnd() }
  }

  /// Runs a work item on behalf of a worker.
  func run(_ operation: any AsyncOperation, _ piece: Int) {
    if !isCancelled { operation.run(piece, Cancellation(self)) }
    finishPiece()
  }

  /// Finishes a work item that ended the thread of its worker.
  func abandon(_ operation: any AsyncOperation, _ piece: Int) {
    operation.abandon(piece)
    finishPiece()
  }

  func finishPiece() { if lock.withLock({ lifecycle.finishPiece() }) == .deliver { group.isReady(self) } }

  func finished() async -> AsyncTransaction.Outcome {
    await withCheckedContinuation { continuation in
      let outcome = lock.withLock { () -> AsyncTransaction.Outcome? in
        if let outcome = lifecycle.outcome { return outcome }
        waiting.append(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }

  /// Calls the remaining completions, in order.
  ///
  /// Each one is removed before it is called: it may run the loop or end the thread, and both call the others.
  func deliver(isCallOut: Bool) {
    while let (operation, failure) = takeNext() { operation.deliver(failure, isCallOut: isCallOut) }
    lock.lock()
    guard lifecycle.complete(), let outcome = lifecycle.outcome else { return lock.unlock() }
    let waiting = waiting
    self.waiting = []
    operations = []
    lock.unlock()
    group.end(self)
    for continuation in waiting { continuation.resume(returning: outcome) }
  }

  private func takeNext() -> (any AsyncOperation, AsyncTransactionError?)? {
    lock.withLock {
      guard delivered < operations.count, let operation = operations[delivered].take() else { return nil }
      delivered += 1
      return (operation, lifecycle.failure)
    }
  }

  func loopDidEnd() {
    lock.lock()
    _ = lifecycle.fail(.loopHasEnded)
    cancelled.store(true, ordering: .relaxed)
    lock.unlock()
    deliver(isCallOut: false)
  }
}

/// An operation that was added too late, and whose completion is called with an error.
private final class RejectedOperation: Deliverable {
  private let operation: any AsyncOperation
  private let error: AsyncTransactionError

  private let group: AsyncTransactionGroup

  init(_ operation: any AsyncOperation, _ error: AsyncTransactionError, _ group: AsyncTransactionGroup) {
    self.operation = operation
    self.error = error
    self.group = group
  }

  func deliver(isCallOut: Bool) {
    operation.deliver(error, isCallOut: isCallOut)
    group.end(self)
  }

  func loopDidEnd() { deliver(isCallOut: false) }
}

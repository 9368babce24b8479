// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// What a transaction, its group and its workers share: whoever holds it does not hold the transaction.
///
/// **Locks.** This one is taken before the group's, and that before those of the loop. The pool's is taken alone.
final class AsyncTransactionCore: Deliverable, @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  private let group: AsyncTransactionGroup
  private let workers: WorkerPool
  // Relaxed: an operation that does not see it yet does its work for nothing; what becomes of it is decided under the
  // lock.
  private let cancelled = Atomic<Bool>(false)
  private let lock = Lock()
  @exclusivity(unchecked) private var lifecycle = AsyncTransactionState()
  /// The operations whose completions were not called, in the order in which they were added.
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
    // The group has nothing to call where there are no completions.
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

  /// Lets the completions report a failure, if the state says so.
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

  /// A worker's part.
  func run(_ operation: any AsyncOperation, _ piece: Int) {
    if !isCancelled { operation.run(piece, Cancellation(self)) }
    finishPiece()
  }

  /// Ends a piece of work that has ended its thread.
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

  /// Calls the completions that were not called yet, in order.
  ///
  /// Each leaves the list before it is called: it may run the loop, or end the thread, which calls the others.
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

/// An operation that came too late: its completion is called all the same.
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

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A set of operations that run on workers and whose completions are called together on a loop's thread.
///
/// Operations are added to the transaction, and run when it is committed. After all of them have run, the loop is
/// woken once and calls the completions in the order in which the operations were added.
///
/// ```swift
/// let transaction = AsyncTransaction()
/// transaction.add { _ in try decode(file) } completion: { view.image = try? $0.get() }
/// transaction.add(count: rows.count) { index, _ in rows[index].draw() } completion: { list.show($0) }
/// transaction.commit()
/// ```
///
/// Each operation runs at most once, and each completion is called exactly once, even if the work throws or never
/// returns, the transaction is cancelled or is released while it is open, or the loop ends. A completion that has no
/// result receives an ``AsyncTransactionError`` with the reason. Until it completes, a transaction keeps its loop's
/// common modes alive.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASAsyncTransaction`.
public final class AsyncTransaction: Sendable {
  private let core: AsyncTransactionCore

  /// Creates an open transaction.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - group: The group whose loop calls the completions. Defaults to the group of the calling thread's loop.
  ///   - workers: The pool whose threads run the operations.
  public init(group: AsyncTransactionGroup = .current, workers: WorkerPool = .shared) {
    core = AsyncTransactionCore(group: group, workers: workers)
  }

  deinit { core.drop() }

  /// Adds an operation.
  ///
  /// If the transaction is no longer open, the work does not run, and the completion receives
  /// ``AsyncTransactionError/notOpen(_:)``. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - priority: The priority among the operations waiting in the pool. Operations with larger numbers run first,
  ///     and those with equal numbers in the order in which they were committed.
  ///   - work: A closure that runs on a worker, at most once. It can check whether its result is still needed.
  ///   - completion: A closure called once on the thread of the group's loop, with the result or error of the work,
  ///     or with an ``AsyncTransactionError``. It may run the loop and create other transactions.
  public func add<T: Sendable>(
    priority: Int = 0, _ work: @escaping @Sendable (Cancellation) throws -> T,
    completion: @escaping @Sendable (Result<T, any Error>) -> Void
  ) {
    core.add(SingleOperation(priority: priority, work, completion))
  }

  /// Adds many small operations that share one completion.
  ///
  /// Handing a small operation to a worker can cost more than the operation itself. Workers therefore take these
  /// operations in blocks of 64, and the loop's thread calls a single completion. Otherwise, this method behaves
  /// like ``add(priority:_:completion:)``.
  ///
  /// - Parameters:
  ///   - count: The number of times the work runs. Negative values count as zero.
  ///   - priority: The priority among the operations waiting in the pool. Operations with larger numbers run first.
  ///   - work: A closure that runs on workers, possibly several at a time, once for each index below `count`.
  ///   - completion: A closure called once on the thread of the group's loop, with the results by index. All
  ///     results are `nil` if the transaction was cancelled or failed for another reason.
  public func add<T: Sendable>(
    count: Int, priority: Int = 0, _ work: @escaping @Sendable (Int, Cancellation) -> T,
    completion: @escaping @Sendable (ContiguousArray<T?>) -> Void
  ) {
    core.add(CountedOperation(count: count, priority: priority, work, completion))
  }

  /// Hands the operations to the workers.
  ///
  /// If the transaction is no longer open, this has no effect and is reported on standard error; see
  /// ``tryCommit()``. Can be called from any thread.
  public func commit() {
    do {
      try core.commit()
    } catch {
      Diagnostic.transaction.report("commit() has no effect: \(error)")
    }
  }

  /// Hands the operations to the workers, or throws an error if the transaction is no longer open.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: ``AsyncTransactionError/notOpen(_:)`` if the transaction was already committed or cancelled.
  public func tryCommit() throws(AsyncTransactionError) { try core.commit() }

  /// Cancels the transaction and discards its results.
  ///
  /// Completions that have not been called yet receive ``AsyncTransactionError/cancelled``, even if their work has run.
  /// Work that has not started does not run. Running work can check for the cancellation, but nothing waits for it to
  /// end. Has no effect if the transaction is already cancelled or complete. Can be called from any thread.
  public func cancel() { core.cancel() }

  /// The state of the transaction.
  ///
  /// Can be read from any thread.
  public var state: State { core.state }

  /// Waits until all completions have been called.
  ///
  /// If the transaction is open, this also waits for it to be committed or cancelled. Cancelling the calling task
  /// does not cancel the transaction.
  public func finished() async -> Outcome { await core.finished() }

  /// Commits the transaction if it is still open, and returns whether it was.
  package func commitIfOpen() -> Bool { (try? core.commit()) != nil }

  func loopDidEnd() { core.loopDidEnd() }
}

extension AsyncTransaction {
  /// The states of a transaction.
  public enum State: Sendable, Hashable {
    /// Operations can be added.
    case open
    /// The operations are running, or their completions are being called.
    case committed
    /// The transaction was cancelled, and its completions are being called.
    case cancelled
    /// All completions have been called.
    case complete
  }

  /// The outcome of a transaction.
  public enum Outcome: Sendable, Hashable {
    /// Every completion received the result or error of its work.
    case completed
    /// The transaction was cancelled before the last completion was called.
    case cancelled
    /// Completions had no result for another reason.
    case failed(AsyncTransactionError)
  }
}

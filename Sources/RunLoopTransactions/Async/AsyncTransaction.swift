// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Operations that run on workers, and whose completions are called together on a loop's thread.
///
/// The operations are added, and run when the transaction is committed. When all have run, the loop is woken once and
/// calls the completions, in the order in which the operations were added.
///
/// ```swift
/// let transaction = AsyncTransaction()
/// transaction.add { _ in try decode(file) } completion: { view.image = try? $0.get() }
/// transaction.add(count: rows.count) { index, _ in rows[index].draw() } completion: { list.show($0) }
/// transaction.commit()
/// ```
///
/// Each operation runs at most once, and each completion is called exactly once, whatever happens: the work may throw,
/// or never end, the transaction may be cancelled or released while it is open, and the loop may end. Completions
/// without a result report the reason, by an ``AsyncTransactionError``. While a transaction is running, it keeps the
/// common modes of its loop alive.
///
/// The corresponding class of Texture (AsyncDisplayKit) is `_ASAsyncTransaction`.
public final class AsyncTransaction: Sendable {
  private let core: AsyncTransactionCore

  /// Makes an open transaction.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - group: The group whose loop calls the completions; by default that of the calling thread's loop.
  ///   - workers: The threads that run the operations.
  public init(group: AsyncTransactionGroup = .current, workers: WorkerPool = .shared) {
    core = AsyncTransactionCore(group: group, workers: workers)
  }

  deinit { core.drop() }

  /// Adds an operation.
  ///
  /// If the transaction is no longer open, the work does not run, and the completion reports
  /// ``AsyncTransactionError/notOpen(_:)``. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - priority: Of the operations that wait in the pool, those with a larger number are run first, and among equal
  ///     ones the one that was committed first.
  ///   - work: Runs on a worker, at most once. It can check whether its result is still wanted.
  ///   - completion: Called once on the thread of the group's loop, with the result or error of the work, or with an
  ///     ``AsyncTransactionError``. It may run the loop, and make other transactions.
  public func add<T: Sendable>(
    priority: Int = 0, _ work: @escaping @Sendable (Cancellation) throws -> T,
    completion: @escaping @Sendable (Result<T, any Error>) -> Void
  ) {
    core.add(SingleOperation(priority: priority, work, completion))
  }

  /// Adds many small operations that have one completion.
  ///
  /// Handing an operation to a worker can cost more than a small operation itself. Workers take these operations in
  /// blocks of 64, and they cost the loop's thread one completion. Otherwise this behaves like
  /// ``add(priority:_:completion:)``.
  ///
  /// - Parameters:
  ///   - count: How many times the work runs; less than zero counts as zero.
  ///   - priority: Of the operations that wait in the pool, those with a larger number are run first.
  ///   - work: Runs on workers, on several at a time, once for each number below the count.
  ///   - completion: Called once on the thread of the group's loop with the results by their numbers. All are nil if
  ///     the transaction was cancelled, or if it has no results for another reason.
  public func add<T: Sendable>(
    count: Int, priority: Int = 0, _ work: @escaping @Sendable (Int, Cancellation) -> T,
    completion: @escaping @Sendable (ContiguousArray<T?>) -> Void
  ) {
    core.add(CountedOperation(count: count, priority: priority, work, completion))
  }

  /// Hands the operations to the workers.
  ///
  /// A transaction that is no longer open is left as it is, and this is reported on the standard error; see
  /// ``tryCommit()``. Can be called from any thread.
  public func commit() {
    do {
      try core.commit()
    } catch {
      Diagnostic.transaction.report("commit() has no effect: \(error)")
    }
  }

  /// Hands the operations to the workers.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: ``AsyncTransactionError/notOpen(_:)`` if the transaction was committed or cancelled before.
  public func tryCommit() throws(AsyncTransactionError) { try core.commit() }

  /// Discards the results.
  ///
  /// Each completion that was not called yet reports that the transaction was cancelled, even if the work has run. Work
  /// that has not begun does not run; running work can check for the cancellation, and nothing waits for its end.
  /// Calling it again, or when all completions were called, has no effect. Can be called from any thread.
  public func cancel() { core.cancel() }

  /// The state of the transaction.
  ///
  /// Can be read from any thread.
  public var state: State { core.state }

  /// Waits until all completions were called.
  ///
  /// For an open transaction, this waits until it is committed or cancelled. Cancelling the waiting task does not
  /// cancel the transaction.
  public func finished() async -> Outcome { await core.finished() }

  /// Commits for a caller that knows that the transaction may have been committed or cancelled.
  package func commitIfOpen() -> Bool { (try? core.commit()) != nil }

  /// The loop of the group has ended.
  func loopDidEnd() { core.loopDidEnd() }
}

extension AsyncTransaction {
  /// The states of a transaction.
  public enum State: Sendable, Hashable {
    /// Operations can be added.
    case open
    /// The operations are run, or their completions called.
    case committed
    /// It was cancelled, and the completions are called.
    case cancelled
    /// All completions were called.
    case complete
  }

  /// How a transaction has ended.
  public enum Outcome: Sendable, Hashable {
    /// Every completion got the result or error of its work.
    case completed
    /// It was cancelled before the last completion was called.
    case cancelled
    /// Completions had no result for another reason.
    case failed(AsyncTransactionError)
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopTransactions

extension AsyncTransaction {
  /// Adds an operation whose completion runs on the main actor.
  ///
  /// Otherwise, it behaves like the method of RunLoopTransactions. A closure marked with `@MainActor`, as in
  /// `completion: { @MainActor result in show(result) }`, selects this method; other closures select that one.
  ///
  /// - Precondition: The transaction's group is the main loop's.
  public func add<T: Sendable>(
    priority: Int = 0, _ work: @escaping @Sendable (Cancellation) throws -> T,
    completion: @escaping @MainActor @Sendable (Result<T, any Error>) -> Void
  ) {
    let call: @Sendable (Result<T, any Error>) -> Void = MainActor.handler(completion)
    add(priority: priority, work, completion: call)
  }

  /// Adds many small operations that share one completion, which runs on the main actor.
  ///
  /// Otherwise, it behaves like the method of RunLoopTransactions.
  ///
  /// - Precondition: The transaction's group is the main loop's.
  public func add<T: Sendable>(
    count: Int, priority: Int = 0, _ work: @escaping @Sendable (Int, Cancellation) -> T,
    completion: @escaping @MainActor @Sendable (ContiguousArray<T?>) -> Void
  ) {
    let call: @Sendable (ContiguousArray<T?>) -> Void = MainActor.handler(completion)
    add(count: count, priority: priority, work, completion: call)
  }
}

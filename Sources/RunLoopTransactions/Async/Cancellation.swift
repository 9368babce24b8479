// SPDX-License-Identifier: Apache-2.0

/// A token that reports whether the result of work is still needed.
///
/// Long-running work checks it periodically and returns early if it is cancelled, because its result is discarded.
public struct Cancellation: Sendable {
  /// Nil if the work can never be cancelled.
  private let core: AsyncTransactionCore?

  init(_ core: AsyncTransactionCore) { self.core = core }

  /// Creates a token that is never cancelled, for calling work outside of a transaction.
  public init() { core = nil }

  /// Whether the transaction was cancelled, or its results can no longer be delivered.
  ///
  /// Can be read from any thread, at the cost of one atomic load.
  public var isCancelled: Bool { core?.isCancelled ?? false }

  /// Throws an error if the result is no longer needed.
  ///
  /// - Throws: ``AsyncTransactionError/cancelled``.
  public func check() throws(AsyncTransactionError) { if isCancelled { throw .cancelled } }
}

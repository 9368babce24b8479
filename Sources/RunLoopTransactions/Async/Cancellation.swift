// SPDX-License-Identifier: Apache-2.0

/// Whether the result of work is still wanted.
///
/// Long-running work checks it now and then, and returns early when it is set: its result is not used.
public struct Cancellation: Sendable {
  /// Nil: nobody cancels.
  private let core: AsyncTransactionCore?

  init(_ core: AsyncTransactionCore) { self.core = core }

  /// Makes a value that is never set, for calling work that checks it without a transaction.
  public init() { core = nil }

  /// Whether the transaction was cancelled, or its results can no longer be received.
  ///
  /// Can be read from any thread, and costs a load.
  public var isCancelled: Bool { core?.isCancelled ?? false }

  /// Throws if the result is not wanted.
  ///
  /// - Throws: ``AsyncTransactionError/cancelled``.
  public func check() throws(AsyncTransactionError) { if isCancelled { throw .cancelled } }
}

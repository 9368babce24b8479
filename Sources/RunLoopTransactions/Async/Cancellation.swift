// SPDX-License-Identifier: Apache-2.0

/// Whether the result of work is still wanted.
///
/// Work that takes long looks at it now and then, and returns early when it is set: its result is not used.
public struct Cancellation: Sendable {
  private let core: AsyncTransactionCore

  init(_ core: AsyncTransactionCore) { self.core = core }

  /// Whether the transaction was cancelled, or nobody can receive its results any more.
  ///
  /// Can be read from any thread, and costs a load.
  public var isCancelled: Bool { core.isCancelled }

  /// Throws if the result is not wanted.
  ///
  /// - Throws: ``AsyncTransactionError/cancelled``.
  public func check() throws(AsyncTransactionError) { if isCancelled { throw .cancelled } }
}

// SPDX-License-Identifier: Apache-2.0

/// The state machine of an asynchronous transaction, whose methods return the action to perform.
struct AsyncTransactionState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// Operations can be added.
    case open
    /// Workers run the operations.
    case running
    /// The completions are about to be called, or are being called.
    case delivering
    /// All completions have been called.
    case complete
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Hand the operations to the workers.
    case start
    /// Have the loop call the completions.
    case deliver
    /// The request is too late.
    case reject
  }

  private(set) var phase = Phase.open
  /// The reason that completions that have not been called yet receive no result.
  private(set) var failure: AsyncTransactionError?
  /// The number of work items that workers have not finished.
  private(set) var unfinished = 0

  /// Whether an operation can be added.
  var acceptsOperations: Bool { phase == .open }

  /// The operations, with a total of `pieces` work items, were committed.
  mutating func commit(pieces: Int) -> Action {
    guard phase == .open else { return .reject }
    unfinished = pieces
    phase = pieces > 0 ? .running : .delivering
    return pieces > 0 ? .start : .deliver
  }

  /// A worker finished or skipped a work item.
  mutating func finishPiece() -> Action {
    precondition(phase != .open && unfinished > 0, "work was finished in \(self)")
    unfinished -= 1
    guard phase == .running, unfinished == 0 else { return .nothing }
    phase = .delivering
    return .deliver
  }

  /// The transaction was cancelled.
  ///
  /// - Parameter hasUndelivered: Whether there are completions that have not been called.
  mutating func cancel(hasUndelivered: Bool) -> Action {
    phase == .delivering && !hasUndelivered ? .nothing : fail(.cancelled)
  }

  /// The last reference to the transaction was released.
  mutating func drop() -> Action { phase == .open ? fail(.droppedWhileOpen) : .nothing }

  /// The transaction failed; only the first error is kept.
  mutating func fail(_ error: AsyncTransactionError) -> Action {
    guard phase != .complete else { return .nothing }
    failure = failure ?? error
    guard phase != .delivering else { return .nothing }
    phase = .delivering
    return .deliver
  }

  /// Records that the last completion was called, or returns false if it already was.
  mutating func complete() -> Bool {
    guard phase != .complete else { return false }
    precondition(phase == .delivering, "the completions were called in \(self)")
    phase = .complete
    return true
  }

  /// The state that is reported to users.
  var visible: AsyncTransaction.State {
    switch phase {
    case .open: .open
    case .running: .committed
    case .delivering: failure == .cancelled ? .cancelled : .committed
    case .complete: .complete
    }
  }

  /// The outcome, or nil while the transaction is not complete.
  var outcome: AsyncTransaction.Outcome? {
    guard phase == .complete else { return nil }
    return switch failure {
    case nil: .completed
    case .cancelled: .cancelled
    case let error?: .failed(error)
    }
  }
}

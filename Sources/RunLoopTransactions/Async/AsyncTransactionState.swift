// SPDX-License-Identifier: Apache-2.0

/// What becomes of an asynchronous transaction, as a value: each event is a function that changes it and says what is
/// to be done.
struct AsyncTransactionState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// Operations are added.
    case open
    /// Workers run the operations.
    case running
    /// The completions are to be called, or are being called.
    case delivering
    /// All completions were called.
    case complete
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Hand the operations to the workers.
    case start
    /// Let the loop call the completions.
    case deliver
    /// What was asked for comes too late.
    case reject
  }

  private(set) var phase = Phase.open
  /// Why completions that were not called yet report no result.
  private(set) var failure: AsyncTransactionError?
  /// The pieces of work that workers have not finished.
  private(set) var unfinished = 0

  /// An operation is to be added.
  var acceptsOperations: Bool { phase == .open }

  /// The operations, which make so many pieces of work, are to be run.
  mutating func commit(pieces: Int) -> Action {
    guard phase == .open else { return .reject }
    unfinished = pieces
    phase = pieces > 0 ? .running : .delivering
    return pieces > 0 ? .start : .deliver
  }

  /// A worker has finished a piece of work, or has passed it over.
  mutating func finishPiece() -> Action {
    precondition(phase != .open && unfinished > 0, "work was finished in \(self)")
    unfinished -= 1
    guard phase == .running, unfinished == 0 else { return .nothing }
    phase = .delivering
    return .deliver
  }

  /// The results are not wanted any more.
  ///
  /// - Parameter hasUndelivered: Whether a completion is left that was not called.
  mutating func cancel(hasUndelivered: Bool) -> Action {
    phase == .delivering && !hasUndelivered ? .nothing : fail(.cancelled)
  }

  /// Nobody can commit it any more.
  mutating func drop() -> Action { phase == .open ? fail(.droppedWhileOpen) : .nothing }

  /// There will be no results, for a reason; the first counts.
  mutating func fail(_ error: AsyncTransactionError) -> Action {
    guard phase != .complete else { return .nothing }
    failure = failure ?? error
    guard phase != .delivering else { return .nothing }
    phase = .delivering
    return .deliver
  }

  /// The last completion was called; false if that has been said before.
  mutating func complete() -> Bool {
    guard phase != .complete else { return false }
    precondition(phase == .delivering, "the completions were called in \(self)")
    phase = .complete
    return true
  }

  /// The state for those who ask.
  var visible: AsyncTransaction.State {
    switch phase {
    case .open: .open
    case .running: .committed
    case .delivering: failure == .cancelled ? .cancelled : .committed
    case .complete: .complete
    }
  }

  /// How it ended; nil before that.
  var outcome: AsyncTransaction.Outcome? {
    guard phase == .complete else { return nil }
    return switch failure {
    case nil: .completed
    case .cancelled: .cancelled
    case let error?: .failed(error)
    }
  }
}

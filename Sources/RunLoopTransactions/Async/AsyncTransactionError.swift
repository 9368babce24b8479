// SPDX-License-Identifier: Apache-2.0

public import RunLoopThreads

/// The reason that an operation of an asynchronous transaction has no result.
public enum AsyncTransactionError: Error, Hashable, Sendable {
  /// The transaction was cancelled before the completion was called.
  case cancelled
  /// The transaction is no longer open. The associated value is its state.
  case notOpen(AsyncTransaction.State)
  /// The last reference to the transaction was released before it was committed.
  case droppedWhileOpen
  /// The thread of the group's loop has ended.
  case loopHasEnded
  /// The work ended the thread of its worker.
  case workerHasEnded
  /// The worker pool has no thread, and the system could not make one.
  case noWorkers(ThreadError)
}

extension AsyncTransactionError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .cancelled: "the asynchronous transaction was cancelled"
    case .notOpen(let state): "the asynchronous transaction is \(state), and no longer open"
    case .droppedWhileOpen: "the asynchronous transaction was released while it was open: commit it, or cancel it"
    case .loopHasEnded: "the thread of the run loop that calls the completions has ended"
    case .workerHasEnded: "the work has ended the thread of its worker"
    case .noWorkers(let error): "the worker pool has no thread: \(error)"
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// An error of a thread operation.
public enum ThreadError: Error, Hashable, Sendable {
  /// The thread has not been started, so nothing can run on it.
  case notStarted(thread: String)
  /// The thread has already been started; a thread runs only once.
  case alreadyStarted(thread: String)
  /// The thread was cancelled before it was started.
  case cancelledBeforeStart(thread: String)
  /// The thread has finished, so nothing can run on it.
  case finished(thread: String)
  /// The main thread has exited, as it does in a program with an `async` main, so nothing can run on it.
  case mainThreadHasLeft
  /// The thread is stopping and accepts no more work.
  case stopping(thread: String)
  /// The system could not create the thread; `number` is the `errno` value, such as `EAGAIN`.
  case cannotStart(thread: String, number: Int32)
  /// The list of modes is empty, so the work would never run.
  case noModes
  /// The work was cancelled before it ran.
  case cancelled
  /// The thread or its run loop ended before the work ran, or while it was running.
  case dropped(thread: String)
  /// The wait timed out.
  ///
  /// Work that has not begun is cancelled; work that has begun continues.
  case timedOut
  /// A thread cannot wait for its own end.
  case joinsItself(thread: String)
  /// The wait would close a cycle of threads that wait for each other, in the given order.
  case wouldDeadlock(cycle: [String])
}

extension ThreadError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .notStarted(let thread): "\(thread) has not been started"
    case .alreadyStarted(let thread): "\(thread) has already been started"
    case .cancelledBeforeStart(let thread): "\(thread) was cancelled before it was started"
    case .finished(let thread): "\(thread) has finished"
    case .mainThreadHasLeft: "\(RunLoopError.mainThreadHasLeft)"
    case .stopping(let thread): "\(thread) accepts no more work, because it is stopping"
    case .cannotStart(let thread, let number): "\(thread) could not be started: \(errorText(number))"
    case .noModes: "the list of modes is empty, so the work could never run"
    case .cancelled: "the work was cancelled before it ran"
    case .dropped(let thread): "\(thread) ended before the work had run"
    case .timedOut: "the wait timed out"
    case .joinsItself(let thread): "\(thread) cannot wait for its own end"
    case .wouldDeadlock(let cycle):
      "waiting would never end, because the threads wait for each other: " + cycle.joined(separator: " waits for ")
    }
  }
}

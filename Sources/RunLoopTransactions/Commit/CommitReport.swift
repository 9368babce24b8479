// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A report of one commit of a ``CommitPipeline``.
public struct CommitReport: Sendable, Hashable {
  /// The reason that a commit was made when it was.
  public enum Cause: Sendable, Hashable {
    /// The loop was about to wait.
    case beforeWaiting
    /// A run of the loop ended.
    case exit
    /// The frame interval elapsed before the loop reached its wait.
    case deadline
    /// The commit was requested with ``CommitPipeline/flush()``.
    case flush
    /// No commit was made, because the loop's thread has ended.
    case loopEnded
    /// No commit was made, because the pipeline was invalidated with ``CommitPipeline/invalidate()``.
    case invalidated
  }

  /// The number of the commit, counting from 1, or 0 if no commit was made.
  public let number: Int
  /// The number of times ``CommitPipeline/setNeedsCommit()`` was called for the commit.
  public let marks: Int
  /// The reason that the commit was made when it was, or that it was not made.
  public let cause: Cause
  /// The time at which the commit began, by the loop's clock.
  public let began: SuspendingClock.Instant
  /// The time that the stages took, including other observers that ran between them.
  public let duration: Duration

  /// Whether a commit was made.
  public var isCommitted: Bool { cause != .loopEnded && cause != .invalidated }
}

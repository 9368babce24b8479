// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The range of a commit of a ``CommitPipeline``, and when it was made.
public struct CommitReport: Sendable, Hashable {
  /// The reason why a commit was made at its time.
  public enum Cause: Sendable, Hashable {
    /// The loop was about to wait.
    case beforeWaiting
    /// A run of the loop ended.
    case exit
    /// The frame interval was over, and the loop had not reached its wait.
    case deadline
    /// The commit was requested with ``CommitPipeline/flush()``.
    case flush
    /// No commit was made: the loop's thread has ended.
    case loopEnded
    /// No commit was made: the pipeline was taken out with ``CommitPipeline/invalidate()``.
    case invalidated
  }

  /// The number of the commit, counted from one; zero if none was made.
  public let number: Int
  /// How many times ``CommitPipeline/setNeedsCommit()`` was called for the commit.
  public let marks: Int
  /// The reason for the time of the commit, or that it was not made.
  public let cause: Cause
  /// When the commit began, by the loop's clock.
  public let began: SuspendingClock.Instant
  /// How long the stages took, together with the work of other observers between them.
  public let duration: Duration

  /// Whether a commit was made.
  public var isCommitted: Bool { cause != .loopEnded && cause != .invalidated }
}

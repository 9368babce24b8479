// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// What a commit of a ``CommitPipeline`` covered, and when it was made.
public struct CommitReport: Sendable, Hashable {
  /// Why a commit was made at its time.
  public enum Cause: Sendable, Hashable {
    /// The loop was about to wait.
    case beforeWaiting
    /// A run of the loop ended.
    case exit
    /// The frame interval was over, and the loop had not come to its wait.
    case deadline
    /// Somebody asked for it with ``CommitPipeline/flush()``.
    case flush
    /// None was made: the loop's thread has ended.
    case loopEnded
    /// None was made: the pipeline was taken out with ``CommitPipeline/invalidate()``.
    case invalidated
  }

  /// The number of the commit, counted from one; zero if none was made.
  public let number: Int
  /// How many times ``CommitPipeline/setNeedsCommit()`` was called for it.
  public let marks: Int
  /// Why it was made at its time, or that it was not made.
  public let cause: Cause
  /// When it began, by the loop's clock.
  public let began: SuspendingClock.Instant
  /// How long its stages took together with what other observers did between them.
  public let duration: Duration

  /// Whether a commit was made.
  public var isCommitted: Bool { cause != .loopEnded && cause != .invalidated }
}

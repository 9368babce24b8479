// SPDX-License-Identifier: Apache-2.0

/// The orders in which the parts of a turn follow each other.
///
/// A turn is one pass of a loop, from its beginning to its wait. The changes of the turn are gathered, and observers
/// process them before the loop waits, in this order: run loop queues, updates, the commit, asynchronous transactions,
/// the pool. The numbers are those of Apple's interface libraries, as the dump of an application's main loop shows
/// them. An observer that should run between two of them takes a number between.
public enum TurnOrder {
  /// ``TurnPool`` opens a pool, at the entry of a run: before every observer of another order.
  public static let poolPush = -2_147_483_647
  /// The source that handles queued events is performed before sources of order zero.
  public static let eventQueue = -1
  /// The consequences of events: actions of gestures, and every ``RunLoopQueue``, before the loop waits.
  public static let queues = 0
  /// Objects that were changed on other threads are applied.
  public static let updates = 1_000_000
  /// Work just before a commit.
  public static let beforeCommit = 1_999_000
  /// The stages of a ``CommitPipeline``.
  public static let commit = 2_000_000
  /// Work just after a commit.
  public static let afterCommit = 2_001_000
  /// An ``AsyncTransactionGroup`` commits the turn's transaction.
  public static let asyncCommit = 2_147_483_646
  /// ``TurnPool`` closes the turn's pool: after every observer of another order.
  public static let poolPop = 2_147_483_647
}

// SPDX-License-Identifier: Apache-2.0

/// The orders in which the parts of a turn run.
///
/// A turn is one pass of a loop, from its start to its wait. Changes are collected during the turn, and observers
/// process them before the loop waits, in this order: run loop queues, updates, the commit, asynchronous
/// transactions, and the pool. The values are those of Apple's UI frameworks, as shown by a dump of an
/// application's main run loop. To run an observer between two of them, choose an order in between.
public enum TurnOrder {
  /// The order in which ``TurnPool`` opens a pool when a run begins, before all other observers.
  public static let poolPush = -2_147_483_647
  /// The order of the source that handles queued events, which is performed before sources of order zero.
  public static let eventQueue = -1
  /// The order of gesture actions and of every ``RunLoopQueue``, before the loop waits.
  public static let queues = 0
  /// The order for applying changes that were made on other threads.
  public static let updates = 1_000_000
  /// The order for work just before a commit.
  public static let beforeCommit = 1_999_000
  /// The order of the commit, which is the default order of the stages of a ``CommitPipeline``.
  public static let commit = 2_000_000
  /// The order for work just after a commit.
  public static let afterCommit = 2_001_000
  /// The order in which an ``AsyncTransactionGroup`` commits the turn's transaction.
  public static let asyncCommit = 2_147_483_646
  /// The order in which ``TurnPool`` closes the turn's pool, after all other observers.
  public static let poolPop = 2_147_483_647
}

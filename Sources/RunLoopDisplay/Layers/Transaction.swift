// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// The changes of views that one commit shows.
///
/// Changes belong to the transaction of the turn, which is committed by itself when the main loop is about to wait, or
/// a run of it ends. Use a transaction of your own, from ``begin()`` to ``commit()``, to be notified when its changes
/// are visible:
///
/// ```Swift
/// Transaction.begin()
/// Transaction.setCompletionBlock { print("it is on the screen") }
/// label.text = "saved"
/// Transaction.commit()
/// ```
///
/// The changes of transactions of a turn are shown together, in one frame. ``flush()`` shows them now.
///
/// The corresponding class of Core Animation is `CATransaction`.
@MainActor
public enum Transaction {
  /// The transactions that were begun: the completion block of each.
  private static var open: [ShownBlock?] = []

  /// Begins a transaction, within the one that is open.
  public static func begin() { open.append(nil) }

  /// Ends the transaction that was begun last.
  ///
  /// Its changes are shown by the turn's commit. Its completion block is called after that commit, and after the
  /// completion blocks of the transactions within it.
  ///
  /// - Precondition: A transaction was begun.
  public static func commit() {
    guard let last = open.popLast() else { fatalError("Transaction.commit() was called without Transaction.begin()") }
    guard let completion = last else { return }
    guard let application = Application.shared else { return complete(completion.call) }
    application.whenShown(completion.call)
  }

  /// Whether a block is being called for which no frame came.
  private static var isCompleting = false

  /// Calls a completion block for which no frame comes: now, or in a later turn if another is being called.
  ///
  /// Blocks that begin a transaction each would call each other forever.
  static func complete(_ block: @escaping @MainActor @Sendable () -> Void) {
    guard !isCompleting else {
      RunLoop.main.perform(MainActor.handler { complete(block) })
      return
    }
    isCompleting = true
    block()
    isCompleting = false
  }

  /// Shows the changes so far, without waiting for the end of the turn.
  ///
  /// Nothing is written while the device cannot take a frame; the changes are shown as soon as it can.
  public static func flush() { Application.shared?.pipeline.flush() }

  /// Sets a block that is called when the changes of the transaction that was begun last are visible, or at once by
  /// ``commit()`` if no application is running.
  ///
  /// Visible means that the device has taken the frame. A terminal that has stopped reading may have a part of that
  /// frame still to read when the block is called; only the next frame waits for it.
  ///
  /// It is called exactly once, on the main actor, at the latest when the application ends. If such a block is called
  /// by the end of the application, or without one, and sets another block, that one is called in a later turn of the
  /// main loop.
  ///
  /// - Precondition: A transaction was begun.
  public static func setCompletionBlock(_ block: (@MainActor @Sendable () -> Void)?) {
    guard !open.isEmpty else { fatalError("Transaction.setCompletionBlock(_:) was called without Transaction.begin()") }
    // A closure by itself would be kept in a thunk.
    guard let block else { return open[open.count - 1] = nil }
    open[open.count - 1] = ShownBlock(call: block)
  }
}

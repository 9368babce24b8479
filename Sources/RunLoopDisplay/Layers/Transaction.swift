// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTransactions

/// A group of view changes that one commit shows.
///
/// Changes belong to the transaction of the turn, which is committed automatically when the main loop is about to wait
/// or a run ends. To be notified when particular changes are visible, create a transaction with ``begin()`` and
/// ``commit()``:
///
/// ```Swift
/// Transaction.begin()
/// Transaction.setCompletionBlock { print("it is on the screen") }
/// label.text = "saved"
/// Transaction.commit()
/// ```
///
/// All changes of a turn are shown together, in one frame. ``flush()`` shows them immediately.
///
/// The corresponding class of Core Animation is `CATransaction`.
@MainActor
public enum Transaction {
  /// The completion blocks of the open transactions.
  private static var open: [ShownBlock?] = []

  /// Begins a transaction, nested in any open one.
  public static func begin() { open.append(nil) }

  /// Ends the innermost open transaction.
  ///
  /// The turn's commit shows its changes. Its completion block is called after that commit, and after the completion
  /// blocks of the transactions nested in it.
  ///
  /// - Precondition: A transaction is open.
  public static func commit() {
    guard let last = open.popLast() else { fatalError("Transaction.commit() was called without Transaction.begin()") }
    guard let completion = last else { return }
    guard let application = Application.shared else { return complete(completion.call) }
    application.whenShown(completion.call)
  }

  /// Whether a block is being called without a frame.
  private static var isCompleting = false

  /// Calls a completion block for which there is no frame, or defers it to a later turn if another one is running.
  ///
  /// Otherwise, blocks that each begin a transaction would call each other forever.
  static func complete(_ block: @escaping @MainActor @Sendable () -> Void) {
    guard !isCompleting else {
      RunLoop.main.perform(MainActor.handler { complete(block) })
      return
    }
    isCompleting = true
    block()
    isCompleting = false
  }

  /// Shows the changes made so far, without waiting for the end of the turn.
  ///
  /// If the device is not ready for a frame, the changes are shown as soon as it is.
  public static func flush() { Application.shared?.pipeline.flush() }

  /// Sets a block to call when the changes of the innermost open transaction are visible.
  ///
  /// If no application is running, ``commit()`` calls the block. Changes are visible once the device has accepted the
  /// frame. A terminal that has stopped reading may not have read all of it; only the next frame waits for that.
  ///
  /// The block is called exactly once, on the main actor, at the latest when the application ends. A block that is set
  /// by another block without a running application, or while it ends, is called in a later turn.
  ///
  /// - Precondition: A transaction is open.
  public static func setCompletionBlock(_ block: (@MainActor @Sendable () -> Void)?) {
    guard !open.isEmpty else { fatalError("Transaction.setCompletionBlock(_:) was called without Transaction.begin()") }
    // Storing the closure directly would wrap it in a thunk.
    guard let block else { return open[open.count - 1] = nil }
    open[open.count - 1] = ShownBlock(call: block)
  }
}

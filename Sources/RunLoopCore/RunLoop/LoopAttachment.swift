// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An object that a higher layer associates with a loop until the loop ends or the object is detached.
///
/// Unlike an observer, an attachment is notified when its loop ends. Unlike a source, it does not keep a mode alive.
package protocol LoopAttachment: AnyObject, Sendable {
  /// Called after the loop has ended and rejects all items and blocks.
  ///
  /// Called once, on the loop's thread, with no locks held. ``RunLoop/current`` still returns the loop.
  func loopDidEnd()
}

extension RunLoop {
  /// Returns the loop's only attachment of a type, and creates it if there is none.
  ///
  /// Can be called from any thread. If another thread attaches an object first, the one that `make` returns is
  /// discarded, so set up the attachment only if `isNew` is true.
  ///
  /// - Returns: `nil` once the loop's thread has begun to end the loop.
  package func attachment<Attachment: LoopAttachment>(
    _ type: Attachment.Type, orMake make: () -> Attachment
  ) -> (attachment: Attachment, isNew: Bool)? {
    if let known = attachment(type) { return (known, false) }
    let made = make()
    let key = ObjectIdentifier(type)
    return table.withLock { table in
      guard !table.isDead else { return nil }
      if let earlier = attachments[key] as? Attachment { return (earlier, false) }
      attachments[key] = made
      return (made, true)
    }
  }

  /// Returns the attachment of a type, if there is one; can be called from any thread.
  package func attachment<Attachment: LoopAttachment>(_ type: Attachment.Type) -> Attachment? {
    table.withLock { _ in attachments[ObjectIdentifier(type)] }.map { unsafeDowncast($0, to: Attachment.self) }
  }

  /// Attaches an object; a loop can have any number of attachments of its type.
  ///
  /// Can be called from any thread. Returns `false` once the loop's thread has begun to end the loop.
  package func attach(_ attachment: any LoopAttachment) -> Bool {
    table.withLock { table in
      guard !table.isDead else { return false }
      attachments[ObjectIdentifier(attachment)] = attachment
      return true
    }
  }

  /// Removes an object attached with ``attach(_:)``.
  ///
  /// Can be called from any thread. Does not wait for a ``LoopAttachment/loopDidEnd()`` that is already running.
  package func detach(_ attachment: any LoopAttachment) {
    let removed = table.withLock { _ in attachments.removeValue(forKey: ObjectIdentifier(attachment)) }
    withExtendedLifetime(removed) {}
  }

  /// Notifies the attachments that the loop has ended, at a point where none can be added.
  func endAttachments() {
    let ended = table.withLock { _ in exchange(&attachments, with: [:]) }
    for attachment in ended.values { attachment.loopDidEnd() }
  }

  /// The number of nested runs of the loop that are active (used only on the loop's thread).
  package var runDepth: Int { innermost.depth }

  /// The number of times the loop has waited or polled, in any mode (used only on the loop's thread).
  package var waits: Int { waitCount }

  /// Wakes the innermost run if its mode has become empty, so that it finishes instead of sleeping.
  ///
  /// For code that removes its own item in an observer called before the wait. Must be called on the loop's thread.
  package func wakeUpIfEmpty() {
    if let mode = innermost.mode, mode.itemCount.load(ordering: .relaxed) == 0 { wakeUp() }
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An object that a layer above keeps with a loop until the loop ends or gives it up.
///
/// An observer is not notified of the end of its loop, and a source would keep a mode alive; an attachment is notified,
/// and keeps no mode alive.
package protocol LoopAttachment: AnyObject, Sendable {
  /// Called when the loop has ended: it rejects every item and block, and its thread runs it no more.
  ///
  /// It is called once, on the loop's thread, for which the loop is still ``RunLoop/current``, and under no lock.
  func loopDidEnd()
}

extension RunLoop {
  /// The attachment of a type, of which a loop has at most one; it is made now if there is none.
  ///
  /// Can be called from any thread. The object that `make` returns may be unused, because another thread's came first;
  /// so the caller for which it is new sets it up.
  ///
  /// - Returns: Nil once the loop's thread has begun to end the loop.
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

  /// The attachment of a type, if there is one.
  ///
  /// Can be called from any thread.
  package func attachment<Attachment: LoopAttachment>(_ type: Attachment.Type) -> Attachment? {
    table.withLock { _ in attachments[ObjectIdentifier(type)] }.map { unsafeDowncast($0, to: Attachment.self) }
  }

  /// Attaches an object, of whose type a loop may have any number; returns false once the loop's thread has begun to
  /// end the loop.
  ///
  /// Can be called from any thread.
  package func attach(_ attachment: any LoopAttachment) -> Bool {
    table.withLock { table in
      guard !table.isDead else { return false }
      attachments[ObjectIdentifier(attachment)] = attachment
      return true
    }
  }

  /// Removes an object that was attached with ``attach(_:)``; its ``LoopAttachment/loopDidEnd()`` may be running.
  ///
  /// Can be called from any thread.
  package func detach(_ attachment: any LoopAttachment) {
    let removed = table.withLock { _ in attachments.removeValue(forKey: ObjectIdentifier(attachment)) }
    withExtendedLifetime(removed) {}
  }

  /// Notifies the attachments of the loop's end, when no other can be added.
  func endAttachments() {
    let ended = table.withLock { _ in exchange(&attachments, with: [:]) }
    for attachment in ended.values { attachment.loopDidEnd() }
  }

  /// How many runs of the loop are active, one within the other; used on the loop's thread only.
  package var runDepth: Int { innermost.depth }

  /// How many times the loop has waited, or looked whether something is ready, in any mode; used on the loop's thread
  /// only.
  package var waits: Int { waitCount }

  /// Keeps the innermost run from sleeping in a mode that has become empty, so that it finishes.
  ///
  /// For code that takes its own item out in an observer that is called before the wait. Called on the loop's thread
  /// only.
  package func wakeUpIfEmpty() {
    if let mode = innermost.mode, mode.itemCount.load(ordering: .relaxed) == 0 { wakeUp() }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// An item that has received more than its handler has been called with so far, while it calls the handler.
///
/// Data that the system has already handed out makes no descriptor ready any more. So a run that begins in such a
/// call-out notifies the item first; otherwise it could wait for data that has arrived long ago. Used on the loop's
/// thread only.
package protocol UnreadItem: AnyObject {
  /// Called when a run begins, or when the loop has ended in the call-out: others must find the unread data.
  ///
  /// It must run no user code.
  func runBegins()
}

extension RunLoop {
  /// Notifies the item that a run begins, of this loop or of another library's loop that serves it, or that the loop
  /// ends.
  @inline(__always)
  func tellUnreadItem() { if unreadItem != nil { unreadItem.take()?.runBegins() } }
}

// SPDX-License-Identifier: Apache-2.0

/// An item that is calling its handler while it holds received data that it has not passed to the handler yet.
///
/// The system does not report a descriptor as ready for data that was already read. A run that begins in such a
/// call-out therefore notifies the item first; otherwise it could wait for data that has already arrived. Must be used
/// on the loop's thread.
package protocol UnreadItem: AnyObject {
  /// Called when a run begins, or when the loop ends in the call-out, so that another reader can find the unread data.
  ///
  /// It must not run user code.
  func runBegins()
}

extension RunLoop {
  /// Notifies the item that a run begins, in this loop or another library's loop that serves it, or that the loop ends.
  @inline(__always)
  func tellUnreadItem() { if unreadItem != nil { unreadItem.take()?.runBegins() } }
}

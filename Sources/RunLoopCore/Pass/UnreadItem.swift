// SPDX-License-Identifier: Apache-2.0

/// An item that has received more than its handler was called with yet, while it calls that.
///
/// What the system has given away makes no descriptor ready any more. So a run that begins in such a call-out notifies
/// the item before, else it could wait for what has arrived long ago. The loop's thread only.
package protocol UnreadItem: AnyObject {
  /// A run begins, or the loop has ended in the call-out: what was not read yet is to be found by others.
  ///
  /// It must run no code of a user's.
  func runBegins()
}

extension RunLoop {
  /// A run begins, or another library's that serves this loop; or the loop ends.
  @inline(__always)
  func tellUnreadItem() { if unreadItem != nil { unreadItem.take()?.runBegins() } }
}

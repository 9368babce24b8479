// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// Tests of a user id.
package enum UserID {
  /// Whether it is the calling process's effective user.
  ///
  /// In a user namespace that lacks ids for some users, the kernel reports all of them by one id: no process is taken
  /// for the same user by that id.
  package static func isOwn(_ user: UInt32) -> Bool { user == geteuid() && !isOverflow(user) }

  /// Whether it stands for every user who has no id in this user namespace.
  package static func isOverflow(_ user: UInt32) -> Bool { Int64(user) == overflow }

  private static let overflow = crl_overflow_user()
}

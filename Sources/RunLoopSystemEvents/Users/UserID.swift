// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

package enum UserID {
  /// Returns whether an ID is the calling process's effective user ID.
  ///
  /// In a user namespace that does not map all users, the kernel reports the unmapped ones by a single overflow ID,
  /// which is never considered to be the same user.
  package static func isOwn(_ user: UInt32) -> Bool { user == geteuid() && !isOverflow(user) }

  /// Returns whether an ID stands for all users that are not mapped in this user namespace.
  package static func isOverflow(_ user: UInt32) -> Bool { Int64(user) == overflow }

  private static let overflow = crl_overflow_user()
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopToolKit
import RunLoopLibC

/// The rights with which the tool accesses a user's files.
///
/// A tool run by root could read any file that another user names in a record, so it opens that user's files with only
/// that user's rights. A tool of another user that was granted capabilities opens files without them.
package struct UserRights: Sendable, Hashable {
  package let user: UInt32
  /// The user's primary group according to the system's user list, or 65534 for an unlisted user.
  package let group: UInt32

  package init(of user: UInt32) {
    self.user = user
    guard geteuid() == 0, user != 0 else {
      group = getegid()
      return
    }
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var bytes = [CChar](repeating: 0, count: 1 << 16)
    group = getpwuid_r(user, &entry, &bytes, bytes.count, &found) == 0 && found != nil ? entry.pw_gid : 65534
  }

  /// Whether these rights differ from those of this process.
  package var areOthers: Bool { user != geteuid() }

  /// Calls a closure that opens files with these rights.
  ///
  /// They apply only to files, not to signals or the memory of processes. Other threads keep their rights.
  package func openingFiles<Result>(_ body: () throws(RecordError) -> Result) throws(RecordError) -> Result {
    guard areOthers else { return try body() }
    var before = crlt_files()
    let answer = crlt_files_begin(user, group, &before)
    guard answer == 0 else {
      throw RecordError(
        "what belongs to user \(user) is not read, as this process cannot take that user's rights: "
          + String(cString: strerror(-answer)))
    }
    defer { crlt_files_end(&before) }
    return try body()
  }
}

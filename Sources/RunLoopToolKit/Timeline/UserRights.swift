// SPDX-License-Identifier: Apache-2.0

import CRunLoopTools
import RunLoopLibC

/// The rights with which the tool touches what belongs to a user.
///
/// A tool that root has started could read every file and follow every path that another user has written into a
/// record. It opens that user's files with no other rights than the user has. A tool that is not root's and was given
/// capabilities opens them with none.
package struct UserRights: Sendable, Hashable {
  package let user: UInt32
  /// The user's primary group in the system's list of users; 65534 for a user who is not listed.
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

  /// Whether they are other rights than those of this process.
  package var areOthers: Bool { user != geteuid() }

  /// Calls a closure that opens files, with these rights.
  ///
  /// Only files are touched with them: signals and the memory of processes are not. Other threads keep their rights.
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

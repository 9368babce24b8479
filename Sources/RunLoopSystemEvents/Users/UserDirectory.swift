// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC

/// The directory in which a user's processes find each other.
package enum UserDirectory {
  /// The path of the current user's directory, in the directory that the system has created for the user or the
  /// service, or in `/tmp`.
  ///
  /// A program that runs with more privileges than the user who started it ignores the environment.
  ///
  /// - Complexity: O(*n*) in the number of entries of `/tmp` if this user has no directory there yet, and O(1)
  ///   otherwise.
  package static var path: String {
    for name in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY"] {
      guard let value = Environment.value(name) else { continue }
      let path = name == "RUNTIME_DIRECTORY" ? String(value.prefix { $0 != ":" }) : value
      if path.hasPrefix("/") { return path + "/runloop" }
    }
    return temporary(in: "/tmp", user: geteuid())
  }

  /// Returns the path of a user's directory within a directory that is writable for all users.
  package static func temporary(in parent: String, user: UInt32) -> String {
    let plain = "\(parent)/runloop-\(user)"
    var status = crl_file_status()
    let answer = crl_status_at(AT_FDCWD, plain, &status)
    func isOwn() -> Bool { status.mode & S_IFMT == S_IFDIR && status.user == user }
    if answer == 0, isOwn() { return plain }
    // If there are several, all processes of the user choose the same one.
    let prefix = "runloop-\(user)."
    let others = entries(of: parent, prefix).sorted()
    for name in others where crl_status_at(AT_FDCWD, "\(parent)/\(name)", &status) == 0 && isOwn() {
      return "\(parent)/\(name)"
    }
    if answer == -ENOENT { return plain }
    return "\(parent)/\(prefix)\(String(UInt64.random(in: 0...(.max)), radix: 16))"
  }

  private static func entries(of path: String, _ prefix: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasPrefix(prefix) { names.append(name) }
    }
    return names
  }
}

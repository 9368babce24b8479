// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC

extension MessagePort.Directory {
  /// The user's own: `runloop` in `$XDG_RUNTIME_DIR`, or else in the first directory of `$RUNTIME_DIRECTORY`, which
  /// systemd makes for a service; where neither is set to an absolute path, `/tmp/runloop-` and the user's id.
  ///
  /// If another user has taken that name in `/tmp`, it is `/tmp/runloop-`, the user's id, a dot and a random number:
  /// the first such directory that belongs to this user, or one that is made with the first port. A program that runs
  /// with more rights than the user who started it does not ask the environment.
  ///
  /// - Complexity: O(*n*) in the entries of `/tmp` if this user has no directory there yet; otherwise constant.
  public static var user: MessagePort.Directory {
    for name in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY"] {
      guard let value = Environment.value(name) else { continue }
      let path = name == "RUNTIME_DIRECTORY" ? String(value.prefix { $0 != ":" }) : value
      if path.hasPrefix("/") { return MessagePort.Directory(path: path + "/runloop") }
    }
    return MessagePort.Directory(path: temporary(in: "/tmp", user: geteuid()))
  }

  /// The path of a user's directory in one in which everybody may make directories.
  static func temporary(in parent: String, user: UInt32) -> String {
    let plain = "\(parent)/runloop-\(user)"
    var status = crl_file_status()
    let answer = crl_message_status(AT_FDCWD, plain, &status)
    func isOwn() -> Bool { status.mode & S_IFMT == S_IFDIR && status.user == user }
    if answer == 0, isOwn() { return plain }
    // Of several, all processes of the user choose the same.
    let prefix = "runloop-\(user)."
    let others = entries(of: parent, prefix).sorted()
    for name in others where crl_message_status(AT_FDCWD, "\(parent)/\(name)", &status) == 0 && isOwn() {
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

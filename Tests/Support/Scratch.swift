// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A new temporary directory, removed with its contents on deinitialization.
package final class Scratch: Sendable {
  package let path: String

  package init() {
    var template = Array("/tmp/file-changes-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { preconditionFailure("no directory") }
    path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
  }

  deinit { _ = reap(spawn("/bin/rm", "-rf", path)) }

  package func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

  package func make(_ name: String, text: String? = nil) {
    let file = open(self(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    precondition(file >= 0)
    if let text { _ = write(file, text, text.utf8.count) }
    close(file)
  }

  package func makeDirectory(_ name: String) { precondition(mkdir(self(name), 0o700) == 0) }

  package func move(_ old: String, _ new: String) { precondition(rename(self(old), self(new)) == 0) }
}

/// The entries of a directory, sorted by name.
package func entries(of path: String) -> [(name: String, isDirectory: Bool)] {
  guard let directory = opendir(path) else { return [] }
  defer { closedir(directory) }
  var found: [(String, Bool)] = []
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if name != ".", name != ".." { found.append((name, entry.pointee.d_type == UInt8(DT_DIR))) }
  }
  return found.sorted { $0.0 < $1.0 }
}

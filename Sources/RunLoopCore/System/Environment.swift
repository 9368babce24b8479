// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The environment of the process, as far as it can be believed.
///
/// The user who starts a program sets its environment. If the program has more rights than that user (a set-user-id or
/// set-group-id program, or one whose file has capabilities: `AT_SECURE`), a variable must not choose the files that it
/// writes, the programs that it runs, or whom it speaks with. All parts of the project read variables here.
package enum Environment {
  /// A variable; nil if it is not set, or the process has more rights than the user who started it.
  package static func value(_ name: String) -> String? {
    read(name) { crl_environment($0) }
  }

  /// A variable that is compared with words and nothing else, whatever the process's rights are.
  ///
  /// It must not be a path, an address, a list of either, or the number of a descriptor.
  package static func word(_ name: String) -> String? {
    read(name) { crl_environment_word($0) }
  }

  private static func read(_ name: String, _ call: (UnsafePointer<CChar>) -> UnsafePointer<CChar>?) -> String? {
    guard let name = try? CText(name) else { return nil }
    return name.withPointer { call($0).map { String(cString: $0) } }
  }

  /// Where programs without a slash in their name are looked for: the directories of `PATH`.
  ///
  /// Those that are not absolute are left out: the program that is found must not depend on the working directory.
  package static var programDirectories: [String] {
    (value("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").filter { $0.hasPrefix("/") }
      .map(String.init)
  }
}

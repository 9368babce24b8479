// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The process's environment, with protection against untrusted values.
///
/// The user who starts a program sets its environment. If the program has more privileges than that user (`AT_SECURE`:
/// a set-user-ID or set-group-ID program, or one whose file has capabilities), a variable must not determine which
/// files it writes, which programs it runs or which peers it connects to. All parts of the project read variables here.
package enum Environment {
  /// Returns a variable's value, or `nil` if it is not set or the process has more privileges than the user who
  /// started it.
  package static func value(_ name: String) -> String? {
    read(name) { crl_environment($0) }
  }

  /// Returns a variable's value regardless of the process's privileges, for comparison with fixed words only.
  ///
  /// It must not be used as a path, an address, a list of either, or a descriptor number.
  package static func word(_ name: String) -> String? {
    read(name) { crl_environment_word($0) }
  }

  private static func read(_ name: String, _ call: (UnsafePointer<CChar>) -> UnsafePointer<CChar>?) -> String? {
    guard let name = try? CText(name) else { return nil }
    return name.withPointer { call($0).map { String(cString: $0) } }
  }

  /// The directories of `PATH`, which are searched for programs whose names contain no slash.
  ///
  /// Relative ones are omitted, so that the program found does not depend on the working directory.
  package static var programDirectories: [String] {
    (value("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").filter { $0.hasPrefix("/") }
      .map(String.init)
  }
}

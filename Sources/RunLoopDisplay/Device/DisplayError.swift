// SPDX-License-Identifier: Apache-2.0

/// Why a device cannot be taken.
public enum DisplayError: Error, Hashable, Sendable {
  /// A descriptor is no terminal.
  case notATerminal(descriptor: Int32)
  /// The terminal says of itself that it cannot show a screen: `TERM` is `dumb`, or missing.
  case unusableTerminal(name: String?)
  /// A system call failed.
  case system(call: String, code: Int32)
}

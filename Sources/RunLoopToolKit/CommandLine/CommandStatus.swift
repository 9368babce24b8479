// SPDX-License-Identifier: Apache-2.0

/// The exit status of a command.
package enum CommandStatus: Int32, Sendable {
  /// The command did what was asked of it.
  case success = 0
  /// The command could not do it, and has said why.
  case failure = 1
  /// The arguments make no sense, and nothing was done.
  case usageError = 2
  /// With `--exit-code`: something was found.
  case found = 3
  /// With `--exit-code`: nothing was found, and not everything was seen.
  case unseen = 4
}

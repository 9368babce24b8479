// SPDX-License-Identifier: Apache-2.0

/// The exit status of a command.
package enum CommandStatus: Int32, Sendable {
  /// The command succeeded.
  case success = 0
  /// The command failed and reported the reason.
  case failure = 1
  /// The arguments were invalid, and nothing was done.
  case usageError = 2
  /// With `--exit-code`: a problem was found.
  case found = 3
  /// With `--exit-code`: no problem was found, but not everything could be observed.
  case unseen = 4
}

// SPDX-License-Identifier: Apache-2.0

/// What a command leaves behind.
package enum CommandStatus: Int32, Sendable {
  /// The command did what it was asked to, and every experiment that ran holds.
  case success = 0
  /// An experiment that ran does not hold.
  case failure = 1
  /// The arguments make no sense, and nothing was done.
  case usageError = 2
}

// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The exit status of the laboratory.
package enum CommandStatus: Int32, Sendable {
  /// The command succeeded, and every experiment that ran holds.
  case success = 0
  /// An experiment that ran does not hold.
  case failure = 1
  /// The arguments are invalid, and nothing was run.
  case usageError = 2
}

/// The output of the laboratory.
package struct Output: Sendable {
  /// Prints a line of the results.
  package let print: @Sendable (String) -> Void
  /// Prints a line of an error message.
  package let complain: @Sendable (String) -> Void

  package init(print: @escaping @Sendable (String) -> Void, complain: @escaping @Sendable (String) -> Void) {
    self.print = print
    self.complain = complain
  }

  /// The process's standard output and standard error, unbuffered.
  package static let standard = Output(
    print: { writeLine($0, to: STDOUT_FILENO) }, complain: { writeLine($0, to: STDERR_FILENO) })
}

/// Writes a line to a descriptor, ignoring errors.
private func writeLine(_ line: String, to descriptor: Int32) {
  var text = line + "\n"
  text.withUTF8 { bytes in
    var rest = UnsafeRawBufferPointer(bytes)[...]
    while !rest.isEmpty {
      let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count == 0 || errno != EINTR {
        return
      }
    }
  }
}

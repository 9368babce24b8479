// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// The output of a command.
package struct Output: Sendable {
  /// Prints a line of the command's results.
  package let print: @Sendable (String) -> Void
  /// Prints a line about an error.
  package let complain: @Sendable (String) -> Void

  package init(print: @escaping @Sendable (String) -> Void, complain: @escaping @Sendable (String) -> Void) {
    self.print = print
    self.complain = complain
  }

  /// The process's standard output and standard error, unbuffered.
  package static let standard = Output(
    print: { writeLine($0, to: STDOUT_FILENO) }, complain: { writeLine($0, to: STDERR_FILENO) })
}

/// Writes a line to a descriptor, and drops what cannot be written.
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

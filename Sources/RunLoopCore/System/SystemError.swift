// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A system call that failed: its name and the error that the kernel returned.
public struct SystemError: Error, Hashable, Sendable {
  /// The system call, by the name of its manual page.
  public let call: String
  /// The kernel's error number, such as `EMFILE`.
  public let number: Int32

  package init(call: String, number: Int32) {
    self.call = call
    self.number = number
  }
}

extension SystemError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    let text = strerror(number).map { String(cString: $0) } ?? "error \(number)"
    return "\(call): \(text) (\(number))"
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A failed system call with the error that the kernel returned.
public struct SystemError: Error, Hashable, Sendable {
  /// The name of the system call's manual page.
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

// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a child process cannot be waited for, or why it is not known how the child ended.
public enum ChildProcessError: Error, Hashable, Sendable {
  /// There is no process of this number.
  case noSuchProcess(Int32)
  /// The process is not a child of this one, or has been reaped already.
  case notAChild(Int32)
  /// The child has ended, and other code has reaped it, or the system did, because `SIGCHLD` is ignored.
  case reapedElsewhere(Int32)
  /// A system call failed.
  case system(Int32, SystemError)
}

extension ChildProcessError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .noSuchProcess(let process): "there is no process \(process)"
    case .notAChild(let process): "process \(process) is not a child of this process"
    case .reapedElsewhere(let process):
      "the status of child process \(process) was collected by other code in this process"
    case .system(let process, let error): "child process \(process) cannot be waited for: \(error)"
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of waiting for a child process or of determining how it ended.
public enum ChildProcessError: Error, Hashable, Sendable {
  /// There is no process with this ID.
  case noSuchProcess(Int32)
  /// The process is not a child of this one, or has already been reaped.
  case notAChild(Int32)
  /// The child has ended and was reaped by other code, or by the system because `SIGCHLD` is ignored.
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

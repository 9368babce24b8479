// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of creating a signal source.
public enum SignalError: Error, Hashable, Sendable {
  /// The number is not that of a signal that a program can handle and continue from.
  case cannotBeHandled(signal: Int32)
  /// A system call failed.
  case system(signal: Int32, SystemError)
}

extension SignalError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .cannotBeHandled(let signal): "signal \(signal) cannot be handled by a source"
    case .system(let signal, let error): "signal \(signal) cannot be handled: \(error)"
    }
  }
}

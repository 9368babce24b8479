// SPDX-License-Identifier: Apache-2.0

/// An error thrown when a message cannot be sent.
public enum PortError: Error, Hashable, Sendable {
  /// The port has been invalidated.
  case invalid
  /// The queue is full with `limit` messages, and the sender did not specify a deadline, or the port's policy forbids
  /// waiting.
  case queueFull(limit: Int)
  /// The queue remained full, with `limit` messages, until the deadline.
  case timedOut(limit: Int)
}

extension PortError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .invalid: "the port is invalid"
    case .queueFull(let limit): "the port's queue is full: \(limit) messages wait"
    case .timedOut(let limit): "the port's queue stayed full until the deadline: \(limit) messages wait"
    }
  }
}

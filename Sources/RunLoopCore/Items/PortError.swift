// SPDX-License-Identifier: Apache-2.0

/// Why a port did not take a message.
public enum PortError: Error, Hashable, Sendable {
  /// The port has been invalidated.
  case invalid
  /// The queue holds this many messages, and the sender did not want to wait, or the port's policy allows no waiting.
  case queueFull(limit: Int)
  /// The queue held this many messages until the deadline.
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

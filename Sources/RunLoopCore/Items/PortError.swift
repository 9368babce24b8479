// SPDX-License-Identifier: Apache-2.0

/// Why a port did not take a message.
public enum PortError: Error, Hashable, Sendable {
  /// The port has been invalidated.
  case invalid
  /// So many messages wait already, and the sender did not want to wait, or the port lets nobody wait.
  case queueFull(limit: Int)
  /// So many messages waited until the deadline.
  case timedOut(limit: Int)
}

extension PortError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .invalid: "the port is invalid"
    case .queueFull(let limit): "the port's queue is full: \(limit) messages wait"
    case .timedOut(let limit): "the port's queue stayed full until the deadline: \(limit) messages wait"
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// An error of connecting to a host.
public enum HostConnectionError: Error, Hashable, Sendable {
  /// An address of the host, and the outcome of connecting to it.
  public struct Attempt: Hashable, Sendable {
    /// The outcome of an attempt to connect to an address.
    public enum Outcome: Hashable, Sendable {
      /// The address was not tried.
      case notTried
      /// The attempt was still in progress.
      case connecting
      /// The attempt has failed.
      case failed(SocketError)
    }

    /// The address.
    public let address: SocketAddress
    /// The outcome of connecting to the address.
    public internal(set) var outcome: Outcome
  }

  /// The host could not be resolved.
  case lookup(HostError)
  /// Connecting to each of the host's addresses has failed. The attempts are in the order in which they were made.
  case failed(host: String, attempts: [Attempt])
  /// The time limit for the whole connection has passed. There are no attempts if the host was not yet resolved.
  case timedOut(host: String, after: Duration, attempts: [Attempt])
  /// The task was cancelled.
  case cancelled(host: String)
  /// The thread of the loop ended before the connection was established.
  case loopHasEnded(host: String)
}

extension HostConnectionError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .lookup(let error): "\(error)"
    case .failed(let host, let attempts):
      "no address of \"\(host)\" can be connected to: \(attempts.map(\.description).joined(separator: "; "))"
    case .timedOut(let host, let time, let attempts):
      "\"\(host)\" was not connected to within \(time): "
        + (attempts.isEmpty ? "it was being looked up" : attempts.map(\.description).joined(separator: "; "))
    case .cancelled(let host): "connecting to \"\(host)\" was cancelled"
    case .loopHasEnded(let host): "the loop that was to connect to \"\(host)\" has ended"
    }
  }
}

extension HostConnectionError.Attempt: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch outcome {
    case .notTried: "\(address) was not tried"
    case .connecting: "\(address) has not answered"
    case .failed(let error): "\(address): \(error.cause)"
    }
  }
}

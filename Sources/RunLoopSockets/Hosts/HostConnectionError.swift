// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The reason why no connection to a host was made.
public enum HostConnectionError: Error, Hashable, Sendable {
  /// An address of the host, and the outcome for it.
  public struct Attempt: Hashable, Sendable {
    /// The outcome of an attempt to connect to an address.
    public enum Outcome: Hashable, Sendable {
      /// Its turn had not arrived.
      case notTried
      /// The system was connecting.
      case connecting
      /// It has failed.
      case failed(SocketError)
    }

    /// The address.
    public let address: SocketAddress
    /// The outcome for it.
    public internal(set) var outcome: Outcome
  }

  /// The host has no known address.
  case lookup(HostError)
  /// Each of the host's addresses has failed, in the order in which they were tried.
  case failed(host: String, attempts: [Attempt])
  /// The time limit for the whole attempt was over; without attempts, before the host's addresses were known.
  case timedOut(host: String, after: Duration, attempts: [Attempt])
  /// The task was cancelled.
  case cancelled(host: String)
  /// The thread of the loop ended before that.
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

// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a datagram socket did not do what it was asked to.
public enum DatagramError: Error, Hashable, Sendable {
  /// A system call has failed. The address is the one that the socket was to be bound to, that it was to send to, or
  /// that it is or was to be connected to, or the socket's own; nil if it has none.
  ///
  /// On a connected socket, `ECONNREFUSED` means that nobody receives at the other end, which the network has reported
  /// about an earlier datagram.
  case system(SystemError, address: SocketAddress?)
  /// A datagram is longer than the network or the socket's buffer allows.
  case tooLong(byteCount: Int, address: SocketAddress?)
  /// A descriptor that was to be taken over cannot be used.
  case descriptor(Int32, SystemError)
  /// An option could not be set.
  case option(SocketOption, SystemError)
  /// The socket has been closed or invalidated.
  case invalid
  /// Another task waits for the same already.
  case busy
  /// The run loop cannot watch the socket.
  case loop(RunLoopError)
}

extension DatagramError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .system(let error, let address): address.map { "\($0): \(error)" } ?? "\(error)"
    case .tooLong(let count, let address):
      "a datagram of \(count) bytes\(address.map { " to \($0)" } ?? "") is longer than can be sent"
    case .descriptor(let number, let error): "descriptor \(number) cannot be used: \(error)"
    case .option(let option, let error): "the option \(option) cannot be set: \(error)"
    case .invalid: "the socket has been closed"
    case .busy: "another task is waiting for the socket"
    case .loop(let error): "\(error)"
    }
  }
}

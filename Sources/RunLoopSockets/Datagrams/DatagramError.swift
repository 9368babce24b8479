// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of a datagram socket.
public enum DatagramError: Error, Hashable, Sendable {
  /// A system call has failed. The address is the one to bind, send or connect to, or the socket's own, or `nil` if
  /// there is none.
  ///
  /// On a connected socket, `ECONNREFUSED` means that the network has reported, for an earlier datagram, that there is
  /// no receiver at the other end.
  case system(SystemError, address: SocketAddress?)
  /// A datagram is longer than the network or the socket's buffer allows.
  case tooLong(byteCount: Int, address: SocketAddress?)
  /// A descriptor to be taken over cannot be used.
  case descriptor(Int32, SystemError)
  /// An option could not be set.
  case option(SocketOption, SystemError)
  /// The socket has been closed or invalidated.
  case invalid
  /// Another task is already waiting for the same event.
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

// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a socket or stream did not do what it was asked to, or has ended.
public enum SocketError: Error, Hashable, Sendable {
  /// A system call has failed: a refused connection is `connect` with `ECONNREFUSED`, a reset one `recv` with
  /// `ECONNRESET`.
  ///
  /// The address is the one that the socket connects to or is connected to, or at which it listens or was to listen.
  /// For a peer without an address, such as most peers of a Unix socket, it is the address at which the peer was
  /// accepted. It is nil if there is none, as for a pipe, or if it is not known.
  case system(SystemError, address: SocketAddress?)
  /// The time limit for connecting, or for nothing being received or sent, is over; with the address as in
  /// ``system(_:address:)``.
  case timedOut(after: Duration, address: SocketAddress?)
  /// Nothing was received in ``Socket/Options/readTimeout``, or sent in ``Socket/Options/writeTimeout``, as the side
  /// says; with the address as in ``system(_:address:)``.
  case idle(Socket.Side, after: Duration, address: SocketAddress?)
  /// The deadline of the socket has passed, whatever was received or sent meanwhile; with the address as in
  /// ``system(_:address:)``.
  case deadlinePassed(after: Duration, address: SocketAddress?)
  /// A descriptor that was to be taken over, written or read cannot be used.
  case descriptor(Int32, SystemError)
  /// An option could not be set.
  case option(SocketOption, SystemError)
  /// This many bytes wait to be sent already; none of the new bytes was taken.
  case bufferFull(limit: Int)
  /// The socket's writing side has been shut down.
  case closedForWriting
  /// The socket has been closed or invalidated.
  case invalid
  /// Another task waits for the same already.
  case busy
  /// The connection is not secured, or no longer secured.
  case tls(TLSError)
  /// The run loop cannot watch the socket.
  case loop(RunLoopError)
}

extension SocketError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { address.map { "\($0): \(cause)" } ?? cause }

  private var address: SocketAddress? {
    switch self {
    case .system(_, let address), .timedOut(_, let address), .idle(_, _, let address),
      .deadlinePassed(_, let address):
      address
    default: nil
    }
  }

  /// The text without the address.
  var cause: String {
    switch self {
    case .system(let error, _): "\(error)"
    case .timedOut(let time, _): "nothing arrived within \(time)"
    case .idle(.write, let time, _): "the peer took nothing of what waited to be sent within \(time)"
    case .idle(_, let time, _): "the peer sent nothing within \(time)"
    case .deadlinePassed(let time, _): "the deadline of the socket, after \(time), has passed"
    case .descriptor(let number, let error): "descriptor \(number) cannot be used: \(error)"
    case .option(let option, let error): "the option \(option) cannot be set: \(error)"
    case .bufferFull(let limit): "the send buffer is full: \(limit) bytes or more wait to be sent"
    case .closedForWriting: "the socket has been shut down for writing"
    case .invalid: "the socket has been closed"
    case .busy: "another task is waiting for the socket"
    case .tls(let error): "\(error)"
    case .loop(let error): "\(error)"
    }
  }
}

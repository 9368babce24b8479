// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of a socket or stream.
public indirect enum SocketError: Error, Hashable, Sendable {
  /// A system call has failed. A refused connection is `connect` with `ECONNREFUSED`, a reset one `recv` with
  /// `ECONNRESET`.
  ///
  /// The address is the one that the socket connects to, is connected to, or listens at. For a peer without an
  /// address, such as most peers of a Unix socket, it is the address at which the connection was accepted. It is
  /// `nil` if there is none, as for a pipe, or if it is unknown.
  case system(SystemError, address: SocketAddress?)
  /// The connect timeout or the idle timeout has expired. See ``system(_:address:)`` for the address.
  case timedOut(after: Duration, address: SocketAddress?)
  /// Nothing was received within ``Socket/Options/readTimeout``, or sent within ``Socket/Options/writeTimeout``,
  /// depending on the side. See ``system(_:address:)`` for the address.
  case idle(Socket.Side, after: Duration, address: SocketAddress?)
  /// The socket's deadline has passed, regardless of activity. See ``system(_:address:)`` for the address.
  case deadlinePassed(after: Duration, address: SocketAddress?)
  /// A descriptor to be taken over, written or read cannot be used.
  case descriptor(Int32, SystemError)
  /// An option could not be set.
  case option(SocketOption, SystemError)
  /// At least `limit` bytes are already waiting to be sent. None of the new bytes were queued.
  case bufferFull(limit: Int)
  /// The socket's writing side has been shut down.
  case closedForWriting
  /// The socket has been closed or invalidated.
  case invalid
  /// Another task is already waiting for the same event.
  case busy
  /// The connection could not be secured, or its TLS session has failed.
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

  /// The description without the address.
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

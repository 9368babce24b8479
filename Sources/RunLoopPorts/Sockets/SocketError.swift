// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Why a socket or stream did not do what it was asked to, or has ended.
public enum SocketError: Error, Hashable, Sendable {
  /// A system call has failed: a refused connection is `connect` with `ECONNREFUSED`, a reset one `recv` with
  /// `ECONNRESET`.
  case system(SystemError)
  /// The time for connecting, or without anything received or sent, is over.
  case timedOut(after: Duration)
  /// The deadline of the socket has passed, whatever was received or sent meanwhile.
  case deadlinePassed(after: Duration)
  /// An option could not be set.
  case option(SocketOption, SystemError)
  /// So many bytes wait to be sent already; none of the new ones was taken.
  case bufferFull(limit: Int)
  /// The socket's writing side has been shut down.
  case closedForWriting
  /// The socket has been closed or invalidated.
  case invalid
  /// Another task waits for the same already.
  case busy
  /// The connection is not secured, or not any more.
  case tls(TLSError)
  /// The run loop cannot watch the socket.
  case loop(RunLoopError)
}

extension SocketError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .system(let error): "\(error)"
    case .timedOut(let time): "nothing arrived within \(time)"
    case .deadlinePassed(let time): "the deadline of the socket, after \(time), has passed"
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

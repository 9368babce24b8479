// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of creating a message port or delivering a message.
public enum MessagePortError: Error, Hashable, Sendable {
  /// The name is not valid: it needs 1 to 64 ASCII letters, digits, `.`, `-` and `_`, starting with a letter or digit.
  case invalidName(String)
  /// The socket's path is longer than the kernel allows.
  case pathTooLong(String)
  /// Ports of this user would not be safe in this directory.
  case unsafeDirectory(String, MessagePort.Directory.Fault)
  /// Another live port has this name.
  case nameInUse(String)
  /// No live port has this name.
  case noSuchPort(String)
  /// The process at the other end is not trusted.
  case untrustedPeer(MessagePort.Credentials)
  /// The port has been invalidated.
  case invalid
  /// The other end has closed the connection, because its process has died or its port was invalidated.
  ///
  /// A message that was waiting for a reply may have been received.
  case peerClosed
  /// The other end violated the protocol, and the connection was closed.
  case peerMalformed
  /// There was no room for the message within the time limit. It was not sent.
  case sendTimedOut
  /// No reply arrived within the time limit. The message may have been received.
  case receiveTimedOut
  /// The message is longer than the limit.
  case messageTooLarge(Int, limit: Int)
  /// The message carries more descriptors than the limit allows.
  case tooManyDescriptors(Int, limit: Int)
  /// The receiver rejected the message.
  case rejected(MessagePort.Rejection)
  /// The loop was stopped while it was running to wait for the reply. The message may have been received.
  case stopped
  /// The task that was waiting for the reply was cancelled. The message may have been received.
  case cancelled
  /// The port could not be added to a run loop.
  case runLoop(RunLoopError)
  /// A system call failed.
  case system(SystemError)
}

extension MessagePort {
  /// The reason why a receiver rejects a message.
  public enum Rejection: Int32, Sendable {
    /// The message is longer than the receiver's limit.
    case tooLarge = 1
    /// The receiver had no room for the message's descriptors.
    case descriptorsLost = 2
    /// The receiver has too many connections.
    case tooManyConnections = 3
    /// The receiver does not trust this sender.
    case untrusted = 4
    /// The receiver lacks the memory or descriptors to read the message.
    case noResources = 5
    /// The port was invalidated before it delivered the message.
    case invalidated = 6
    /// Any other reason.
    case other = 7
    /// The sender or its user has reached its quota at the receiver, for example with unfinished messages or unread
    /// replies.
    case quotaExceeded = 8
    /// The receiver does not accept descriptors from this sender.
    case descriptorsUnwanted = 9
  }
}

extension MessagePortError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .invalidName(let name): "\"\(name)\" is not a name for a message port"
    case .pathTooLong(let path): "the path of the message port is too long: \(path)"
    case .unsafeDirectory(let path, let fault): "the directory \(path) is not safe for message ports: \(fault)"
    case .nameInUse(let name): "a living message port is named \"\(name)\""
    case .noSuchPort(let name): "no living message port is named \"\(name)\""
    case .untrustedPeer(let peer): "the peer is not trusted: \(peer)"
    case .invalid: "the message port is invalid"
    case .peerClosed: "the peer has closed the connection"
    case .peerMalformed: "the peer violated the protocol"
    case .sendTimedOut: "the message was not sent in time: the peer does not read"
    case .receiveTimedOut: "no reply arrived in time"
    case .messageTooLarge(let size, let limit): "the message has \(size) bytes, the limit is \(limit)"
    case .tooManyDescriptors(let count, let limit): "the message has \(count) descriptors, the limit is \(limit)"
    case .rejected(let reason): "the receiver rejected the message: \(reason)"
    case .stopped: "the run loop was stopped while it waited for the reply"
    case .cancelled: "the task was cancelled while it waited for the reply"
    case .runLoop(let error): "\(error)"
    case .system(let error): "\(error)"
    }
  }
}

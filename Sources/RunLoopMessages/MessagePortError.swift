// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// Why a message port was not made or a message not delivered.
public enum MessagePortError: Error, Hashable, Sendable {
  /// Not a name: one to 64 ASCII letters, digits, `.`, `-` and `_`, the first a letter or digit.
  case invalidName(String)
  /// The socket's path is too long for the kernel.
  case pathTooLong(String)
  /// The directory is not one in which ports of this user are safe.
  case unsafeDirectory(String, MessagePort.Directory.Fault)
  /// A living port has this name.
  case nameInUse(String)
  /// No living port has this name.
  case noSuchPort(String)
  /// The process at the other end is not one to talk to.
  case untrustedPeer(MessagePort.Credentials)
  /// The port has been invalidated.
  case invalid
  /// The other end is gone: its process has died, or it has invalidated its port.
  ///
  /// A message that waited for a reply may have been received.
  case peerClosed
  /// The other end did not keep to the protocol, and the connection was given up.
  case peerMalformed
  /// There was no room for the message until the time was over; it was not sent.
  case sendTimedOut
  /// No reply came in time; the message may have been received.
  case receiveTimedOut
  /// The message has so many bytes, the limit is less.
  case messageTooLarge(Int, limit: Int)
  /// The message has so many descriptors, the limit is less.
  case tooManyDescriptors(Int, limit: Int)
  /// The receiver did not take the message.
  case rejected(MessagePort.Rejection)
  /// The run of the loop in which the reply was awaited was stopped; the message may have been received.
  case stopped
  /// The task that awaited the reply was cancelled; the message may have been received.
  case cancelled
  /// A run loop did not take the port.
  case runLoop(RunLoopError)
  /// A system call failed.
  case system(SystemError)
}

extension MessagePort {
  /// Why a receiver does not take a message.
  public enum Rejection: Int32, Sendable {
    /// The message is longer than the receiver's limit.
    case tooLarge = 1
    /// The receiver had no room for the message's descriptors.
    case descriptorsLost = 2
    /// The receiver has too many connections.
    case tooManyConnections = 3
    /// The receiver does not talk to this sender.
    case untrusted = 4
    /// The receiver has not the memory or descriptors to read the message.
    case noResources = 5
    /// The port was invalidated while the message waited in it.
    case invalidated = 6
    /// For another reason.
    case other = 7
    /// The sender, or its user, uses as much of the receiver as it may: messages that are not finished, replies that it
    /// has not taken.
    case quotaExceeded = 8
    /// The receiver takes no descriptors of this sender.
    case descriptorsUnwanted = 9
  }
}

extension MessagePortError: CustomStringConvertible {
  /// The text for a person.
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

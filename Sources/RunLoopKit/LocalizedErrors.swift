// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore
public import RunLoopInstruments
public import RunLoopSockets
public import RunLoopThreads

// `localizedDescription` is the text of the error. Without these conformances Foundation prints "The operation could
// not be completed" and a number, which is the number of the case.

extension SystemError: LocalizedError {
  /// The call that failed, and why.
  public var errorDescription: String? { description }
}

extension RunLoopError: LocalizedError {
  /// The reason why the run loop did not do what it was asked to.
  public var errorDescription: String? { description }
}

extension InstrumentsError: LocalizedError {
  /// The reason why the instruments did not do what they were asked to.
  public var errorDescription: String? { description }
}

extension PortError: LocalizedError {
  /// The reason why the port did not take the message.
  public var errorDescription: String? { description }
}

extension ThreadError: LocalizedError {
  /// The reason why the thread did not do what it was asked to.
  public var errorDescription: String? { description }
}

extension SocketError: LocalizedError {
  /// The reason why the socket failed.
  public var errorDescription: String? { description }
}

extension TLSError: LocalizedError {
  /// The reason why the connection is not secured, with the peer.
  public var errorDescription: String? { description }
}

extension StreamSecurityError: LocalizedError {
  /// The reason why the stream's connection cannot be secured as its properties ask.
  public var errorDescription: String? { description }
}

extension SocketActivationError: LocalizedError {
  /// The reason why the descriptors of a service manager cannot be taken.
  public var errorDescription: String? { description }
}

extension SocketAddressError: LocalizedError {
  /// The reason why the text is not an address.
  public var errorDescription: String? { description }
}

extension HostError: LocalizedError {
  /// The reason why the host's addresses were not found.
  public var errorDescription: String? { description }
}

extension DatagramError: LocalizedError {
  /// The reason why the datagram socket failed, with the address.
  public var errorDescription: String? { description }
}

extension HostConnectionError: LocalizedError {
  /// The reason why no connection to the host was made, with the reason of each address.
  public var errorDescription: String? { description }
}

extension SpawnError: LocalizedError {
  /// The reason why the program was not started.
  public var errorDescription: String? { description }
}

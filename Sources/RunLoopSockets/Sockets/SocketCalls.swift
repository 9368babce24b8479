// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// The system calls of sockets, each made under its name so that tests can inject faults.
extension OwnedDescriptor {
  static func makeStream(_ address: SocketAddress) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(try SystemCall.socket.make { crl_socket_stream(address.systemFamily) })
  }

  func bind(_ address: SocketAddress) throws(SystemError) {
    _ = try SystemCall.bind.make { address.withBytes { crl_socket_bind(number, $0, $1) } }
  }

  func listen(_ backlog: Int) throws(SystemError) {
    _ = try SystemCall.listen.make { crl_socket_listen(number, Int32(clamping: backlog)) }
  }

  /// Starts connecting, or returns false if the queue of the listening Unix socket is full and the attempt must be
  /// repeated.
  func connect(_ address: SocketAddress) throws(SystemError) -> Bool {
    do {
      _ = try SystemCall.connect.make { address.withBytes { crl_socket_connect(number, $0, $1) } }
    } catch {
      // For an Internet address, `EAGAIN` means that no local port is left.
      if error.number == EAGAIN, address.family == .unix { return false }
      guard error.number == EINPROGRESS || error.number == EINTR else { throw error }
    }
    return true
  }

  /// Accepts a connection, and returns it with the peer's address, or `nil` for a peer that has none.
  func accept() throws(SystemError) -> (descriptor: OwnedDescriptor, peer: SocketAddress?) {
    // With Swift 6.2, the standard library's function only throws untyped errors.
    let accepted = withUnsafeTemporaryAllocation(byteCount: SocketAddress.capacity, alignment: 8) { bytes in
      Result { () throws(SystemError) -> (descriptor: OwnedDescriptor, peer: SocketAddress?) in
        var length: UInt32 = 0
        let descriptor = OwnedDescriptor(
          try SystemCall.accept.makeUninterrupted {
            crl_socket_accept(number, bytes.baseAddress, UInt32(bytes.count), &length)
          })
        let peer = SocketAddress(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<Int(length)]))
        return (descriptor, peer?.unlessUnnamed)
      }
    }
    return try accepted.get()
  }

  /// Receives up to `bytes.count` bytes, or returns `nil` if the read would block and 0 at the end of the stream.
  @inline(__always)
  func receive(_ bytes: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    do {
      return Int(
        try SystemCall.streamRead.makeUninterrupted { crl_socket_receive(number, bytes.baseAddress, bytes.count) })
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  /// Sends as many bytes as the system accepts, and returns their number.
  @inline(__always)
  func send(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Int {
    do {
      return Int(
        try SystemCall.streamWrite.makeUninterrupted { crl_socket_send(number, bytes.baseAddress, bytes.count) })
    } catch {
      guard error.number == EAGAIN else { throw error }
      return 0
    }
  }

  /// Returns whether bytes are waiting: `nil` if a read would block, false at the end of the stream.
  func hasBytes() throws(SystemError) -> Bool? {
    do {
      return try SystemCall.streamPeek.makeUninterrupted { crl_socket_peek(number) } > 0
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  /// The maximum number of transmit notifications to drop at a time.
  private static let mostNotes: Int32 = 1024

  /// Drops the kernel's transmit notifications, which are not read here and would make the descriptor ready in each
  /// pass.
  func dropNotes() { _ = crl_socket_drop_notes(number, Self.mostNotes) }

  /// Returns whether a socket connected to a local port is connected to itself.
  ///
  /// If no other socket listens at that port, the system may also choose it as the local port and connect the socket to
  /// itself.
  func isConnectedToItself(_ address: SocketAddress?) -> Bool {
    guard let port = address?.port, let own = (try? ownAddress()) ?? nil, own.port == port else { return false }
    // A connection to the wildcard address is a connection to this machine.
    return (try? peerAddress()) == own
  }

  /// Returns the error for a socket that has connected to itself, and makes closing it release the port at once.
  func rejectItself() -> SystemError {
    _ = crl_socket_reset_when_closed(number)
    return SystemError(call: SystemCall.connect.rawValue, number: ECONNREFUSED)
  }

  func shutDown(_ how: Int32) throws(SystemError) {
    _ = try SystemCall.shutDown.make { crl_socket_shut_down(number, how) }
  }

  /// Throws the socket's pending error, if there is one, under the name of the given call.
  func takeError(of call: SystemCall) throws(SystemError) {
    let error = try SystemCall.socketOptionRead.make { crl_socket_take_error(number) }
    guard error == 0 else { throw SystemError(call: call.rawValue, number: error) }
  }

  /// Makes TCP send small amounts of data at once; has no effect on a Unix socket.
  func setNoDelay(_ family: SocketAddress.Family) throws(SystemError) {
    guard family != .unix else { return }
    _ = try SystemCall.socketOption.make { crl_socket_no_delay(number, 1) }
  }

  func ownAddress() throws(SystemError) -> SocketAddress? {
    try SocketAddress.ask(.socketName) { crl_socket_name(number, $0, $1) }
  }

  func peerAddress() throws(SystemError) -> SocketAddress? { try SocketAddress.peer(of: number) }
}

extension SocketAddress {
  static func peer(of descriptor: Int32) throws(SystemError) -> SocketAddress? {
    try ask(.peerName) { crl_socket_peer(descriptor, $0, $1) }
  }
}

extension SystemCall {
  /// Checks that a descriptor is a connected stream socket, and returns its peer's address, or `nil` if the address
  /// family is not supported.
  static func connectedPeer(of descriptor: Int32) throws(SystemError) -> SocketAddress? {
    let peer = try SocketAddress.peer(of: descriptor)
    let type = try SystemCall.socketOptionRead.make { crl_socket_type(descriptor) }
    // Reading a message-oriented socket as a stream would truncate messages.
    guard type == crl_socket_type_stream else {
      throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EPROTOTYPE)
    }
    return peer
  }

  /// Prevents a descriptor that was taken over from being inherited by programs that this process executes.
  static func closeOnExec(_ descriptor: Int32) throws(SystemError) {
    _ = try SystemCall.descriptorFlags.make { fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0 }
  }
}

// MARK: - Options of listening sockets
extension OwnedDescriptor {
  /// Leaves the port with IPv4 to other sockets.
  func setIPv6Only() throws(SystemError) {
    _ = try SystemCall.socketOption.make { crl_socket_ipv6_only(number, 1) }
  }
}

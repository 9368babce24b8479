// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// The system calls of sockets, each under its name for the tests' faults.
extension OwnedDescriptor {
  /// A new stream socket that does not block.
  static func makeStream(_ address: SocketAddress) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(try SystemCall.socket.make { crl_socket_stream(address.systemFamily) })
  }

  func bind(_ address: SocketAddress) throws(SystemError) {
    _ = try SystemCall.bind.make { address.withBytes { crl_socket_bind(number, $0, $1) } }
  }

  func listen(_ backlog: Int) throws(SystemError) {
    _ = try SystemCall.listen.make { crl_socket_listen(number, Int32(clamping: backlog)) }
  }

  /// Begins to connect; false if the queue of a Unix socket that listens has no room, so that it has to be tried again.
  ///
  /// An interrupted connect goes on as one that is in progress does.
  func connect(_ address: SocketAddress) throws(SystemError) -> Bool {
    do {
      _ = try SystemCall.connect.make { address.withBytes { crl_socket_connect(number, $0, $1) } }
    } catch {
      // For an address with a port it says that there is no port left on this side.
      if error.number == EAGAIN, address.family == .unix { return false }
      guard error.number == EINPROGRESS || error.number == EINTR else { throw error }
    }
    return true
  }

  /// Accepts a connection, with the peer's address; nil for a peer that has none.
  func accept() throws(SystemError) -> (descriptor: OwnedDescriptor, peer: SocketAddress?) {
    // With Swift 6.2 the library's function throws untyped errors only.
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

  /// Receives at most so many bytes; nil: there are none now; zero: the end.
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

  /// Sends as many bytes as there is room for.
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

  /// Whether bytes wait to be received; nil: there are none now; false: the end.
  func hasBytes() throws(SystemError) -> Bool? {
    do {
      return try SystemCall.streamPeek.makeUninterrupted { crl_socket_peek(number) } > 0
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  /// How many of the kernel's notes of packets that were sent are dropped at a time.
  private static let mostNotes: Int32 = 1024

  /// Drops what the kernel notes of packets that were sent, if an option asks for that: it is not read here, and it
  /// would be reported in each pass.
  func dropNotes() { _ = crl_socket_drop_notes(number, Self.mostNotes) }

  /// Whether a connection that was made to a port of this machine leads from it to itself.
  ///
  /// If no other socket listens at the port to connect to, the system may choose it for this end, too, and connects the
  /// socket to itself.
  func isConnectedToItself(_ address: SocketAddress?) -> Bool {
    guard let port = address?.port, let own = (try? ownAddress()) ?? nil, own.port == port else { return false }
    // A connection to the address of all interfaces is one to this machine.
    return (try? peerAddress()) == own
  }

  /// The error of a socket that has connected to itself, as no other listens there; releases the port at once.
  func rejectItself() -> SystemError {
    _ = crl_socket_reset_when_closed(number)
    return SystemError(call: SystemCall.connect.rawValue, number: ECONNREFUSED)
  }

  func shutDown(_ how: Int32) throws(SystemError) {
    _ = try SystemCall.shutDown.make { crl_socket_shut_down(number, how) }
  }

  /// The error that has happened to the socket, under the name of the call that it belongs to.
  func takeError(of call: SystemCall) throws(SystemError) {
    let error = try SystemCall.socketOptionRead.make { crl_socket_take_error(number) }
    guard error == 0 else { throw SystemError(call: call.rawValue, number: error) }
  }

  /// Small pieces are sent at once, if the address is one of TCP.
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
  /// Sees whether a descriptor is a connected stream socket, and returns the address of its peer; nil for a family that
  /// is none of ours.
  static func connectedPeer(of descriptor: Int32) throws(SystemError) -> SocketAddress? {
    let peer = try SocketAddress.peer(of: descriptor)
    let type = try SystemCall.socketOptionRead.make { crl_socket_type(descriptor) }
    // Messages would be cut and lost: a socket of them has a type of its own.
    guard type == crl_socket_type_stream else {
      throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EPROTOTYPE)
    }
    return peer
  }

  /// Keeps a descriptor that was taken over from the programs that this process becomes or starts.
  static func closeOnExec(_ descriptor: Int32) throws(SystemError) {
    _ = try SystemCall.descriptorFlags.make { fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0 }
  }
}

// Options of sockets that listen.
extension OwnedDescriptor {
  /// A socket of IPv6 leaves IPv4 to others.
  func setIPv6Only() throws(SystemError) {
    _ = try SystemCall.socketOption.make { crl_socket_ipv6_only(number, 1) }
  }
}

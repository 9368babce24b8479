// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension DatagramSocket {
  /// Sends a datagram, whole or not at all, without waiting.
  ///
  /// Can be called from any thread.
  ///
  /// - Parameters:
  ///   - bytes: The bytes to send. An empty datagram is sent too.
  ///   - address: The receiver. Defaults to `nil`, which means the address that the socket is connected to.
  ///   - source: The local address that the receiver sees as the sender's, such as the
  ///     ``Datagram/Envelope/localAddress`` of the datagram being replied to. Defaults to `nil`, which lets the system
  ///     choose among the addresses that the socket is bound to. The port is ignored. This corresponds to `IP_PKTINFO`
  ///     and `IPV6_PKTINFO`.
  /// - Returns: Whether the datagram was sent. False if there is no room, in which case nothing was sent and
  ///   ``Event/writable`` reports when to try again, provided that the socket is in a loop.
  /// - Throws: ``DatagramError/tooLong(byteCount:address:)``; ``DatagramError/system(_:address:)`` for `sendto` with
  ///   `EDESTADDRREQ` or `ENOTCONN` if there is no address, with `ECONNREFUSED` if the peer has no receiver, possibly
  ///   for an earlier datagram, and with `EINVAL`, `ENETUNREACH` or `EAFNOSUPPORT` if `source` is not an address of
  ///   this machine or not of the socket's family; the error that closed the socket, or
  ///   ``DatagramError/invalid``.
  @discardableResult
  public func send(
    _ bytes: UnsafeRawBufferPointer, to address: SocketAddress? = nil, from source: SocketAddress? = nil
  ) throws(DatagramError) -> Bool {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    guard state.isOpen, let number = descriptor?.number else { throw state.endError ?? .invalid }
    do throws(SystemError) {
      if try DatagramCall.send(bytes, to: address, from: source, by: number) { return true }
    } catch {
      let target = address ?? peer
      throw error.number == EMSGSIZE
        ? .tooLong(byteCount: bytes.count, address: target) : .system(error, address: target)
    }
    state.awaitRoom(byTime: !reportsRoom)
    if reportsRoom { updateInterest() } else { startRetrying() }
    return false
  }

  /// Sends a datagram, as the method for an `UnsafeRawBufferPointer` does.
  @discardableResult
  public func send(
    _ bytes: [UInt8], to address: SocketAddress? = nil, from source: SocketAddress? = nil
  ) throws(DatagramError) -> Bool {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(DatagramError) in try send(bytes, to: address, from: source) }
    }
    return try result.get()
  }

  /// Sends a datagram, such as the bytes of ``Event/received(_:_:)``, as the method for an `UnsafeRawBufferPointer`
  /// does.
  @inlinable
  @discardableResult
  public func send(
    _ bytes: RawSpan, to address: SocketAddress? = nil, from source: SocketAddress? = nil
  ) throws(DatagramError) -> Bool {
    try bytes.withUnsafeBytes { bytes throws(DatagramError) in try send(bytes, to: address, from: source) }
  }
}

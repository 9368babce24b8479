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
  ///   - bytes: The bytes to send; an empty datagram is sent too.
  ///   - address: The receiver; nil means the address that the socket is connected to.
  ///   - source: The address of this machine that the receiver sees as the sender's, such as
  ///     ``Datagram/Envelope/localAddress`` of what is answered; nil means that the system chooses among those that the
  ///     socket is bound to. Its port is not looked at. It corresponds to `IP_PKTINFO` and `IPV6_PKTINFO`.
  /// - Returns: Whether it was sent. False if there is no room: nothing was taken, and ``Event/writable`` reports when
  ///   to try again, if the socket is in a loop.
  /// - Throws: ``DatagramError/tooLong(byteCount:address:)``; ``DatagramError/system(_:address:)``: `sendto` with
  ///   `EDESTADDRREQ` or `ENOTCONN` without an address, with `ECONNREFUSED` if nobody receives at the peer, which may
  ///   be about an earlier datagram; with a source also `EINVAL` or `ENETUNREACH` if it is none of this machine's, and
  ///   `EAFNOSUPPORT` if it is of another family than the socket; ``DatagramError/invalid``.
  @discardableResult
  public func send(
    _ bytes: UnsafeRawBufferPointer, to address: SocketAddress? = nil, from source: SocketAddress? = nil
  ) throws(DatagramError) -> Bool {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    guard state.isOpen, let number = descriptor?.number else { throw .invalid }
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

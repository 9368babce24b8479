// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension ByteStream {
  /// Creates a pair of streams that connect to an address with TLS when the first of them is opened.
  ///
  /// ``Event/openCompleted`` is reported when the handshake is complete and the peer was verified. Encrypted bytes of
  /// a closed stream are still sent, on its loops or, if it is in none, on a thread of this library. The descriptor
  /// stays open there until the peer ends the connection, or for ``TLSConfiguration/handshakeTimeout`` at most.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - tls: The context of the connection, created from a ``TLSConfiguration``.
  ///   - serverName: The name required in the server's certificate. Defaults to `nil`, which requires a certificate
  ///     for the address.
  /// - Throws: ``SocketError/tls(_:)`` if the name is not valid or the context is a server's.
  public static func pair(
    connectingTo address: SocketAddress, tls: TLSContext, serverName: String? = nil
  ) throws(SocketError) -> (input: InputByteStream, output: OutputByteStream) {
    guard !tls.isServer else { throw .tls(TLSError(.wrongSide)) }
    return pair(ByteStreamCore(.address(address), try session(tls, serverName, address)))
  }

  /// Creates a pair of streams that own a connected socket and start TLS on it when the first of them is opened.
  ///
  /// The socket is closed when both streams are closed.
  ///
  /// - Parameters:
  ///   - descriptor: A connected stream socket.
  ///   - tls: The context of the connection, created from a ``TLSConfiguration`` or, on the server's side, from a
  ///     ``TLSServerConfiguration``.
  ///   - serverName: The name required in the server's certificate. Defaults to `nil`, which requires a certificate
  ///     for the address.
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor is not a connected socket, or
  ///   ``SocketError/tls(_:)`` if the name is not valid. The caller then still owns the descriptor.
  public static func pair(
    takingOver descriptor: Int32, tls: TLSContext, serverName: String? = nil
  ) throws(SocketError) -> (input: InputByteStream, output: OutputByteStream) {
    let peer = try takeableSocket(descriptor)
    let session = try session(tls, serverName, tls.isServer ? nil : peer)
    try keepFromPrograms(descriptor)
    let channel = ByteChannel(OwnedDescriptor(descriptor), .socket)
    return pair(ByteStreamCore(.connected(channel), session, at: peer?.unlessUnnamed))
  }

  private static func session(
    _ context: TLSContext, _ serverName: String?, _ address: SocketAddress?
  ) throws(SocketError) -> TLSSession {
    do throws(TLSError) {
      return try TLSSession(context, serverName: serverName, address: address)
    } catch {
      throw .tls(error)
    }
  }

  /// The negotiated parameters of the connection, or `nil` without TLS or before the handshake is complete.
  ///
  /// Can be used from any thread.
  public var tlsInfo: TLSInfo? { lock.isParents ? nil : core.lock.withLock { core.tls?.info } }
}

// Each of these requires the lock.
extension ByteStream {
  /// Whether the stream has to wait for room to send encrypted bytes.
  var hasUnsent: Bool { direction == .writable && core.tls != nil && core.hasUnsent }

  /// Whether receiving is suspended until there is room to send encrypted bytes.
  var isClogged: Bool { direction == .readable && core.tls != nil && core.isClogged }

  /// Checks a handshake in progress on a loop, because the other stream may have consumed the last event.
  func postHandshake() {
    guard state == .opening, core.isShakingHands else { return }
    _ = post { [self] in ready([]) }
  }

  /// Asks a loop to report decrypted bytes, which do not make the descriptor ready.
  func postSession() {
    guard core.tls != nil, direction == .readable, state == .open, !isTold, !hasPostedSession, core.isReadable else {
      return
    }
    hasPostedSession = post { [self] in
      lock.withLock { hasPostedSession = false }
      ready(.readable)
    }
  }

  /// Starts the timer of the handshake, if it is not running yet.
  func startHandshakeTimer() {
    guard registrations.timer == nil, let limit = core.tls?.context.handshakeTimeout else { return }
    let timer = RegisteredTimer(deadline: RunLoop.current.instant(after: limit)) { [weak self] timer in
      self?.handshakeTimedOut(timer, limit)
    }
    registrations.replaceTimer(timer)
  }
}

extension ByteStream {
  /// Called when the other stream has advanced the handshake.
  func handshakeAdvanced() {
    lock.ifOwned { postHandshake() }
  }

  /// Called on the thread of one of the stream's loops.
  private func handshakeTimedOut(_ timer: Timer, _ limit: Duration) {
    lock.lock()
    guard registrations.timer?.contains(timer) == true, state == .opening else { return lock.unlock() }
    let over = registrations.replaceTimer(nil)
    note(.failed(core.handshakeTimedOut(limit)))
    updateInterest()
    lock.unlock()
    over?.invalidate()
    core.other(than: self)?.handshakeAdvanced()
  }
}

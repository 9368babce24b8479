// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension ByteStream {
  /// Makes the two streams of a connection that is made and secured when the first of them is opened.
  ///
  /// ``Event/openCompleted`` is reported when the peer's identity is verified and the keys are agreed on. Encrypted
  /// bytes of a closed stream are still sent, on its loops or, if it is in none, on a thread of the library: the
  /// descriptor stays open there until the peer ends, or for ``TLSConfiguration/handshakeTimeout``.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - tls: The settings that the connection shares with others, made of a ``TLSConfiguration``.
  ///   - serverName: The name that the server has to have; with nil, its certificate has to be for the address.
  /// - Throws: ``SocketError/tls(_:)`` if the name is not valid, or the context is a server's.
  public static func pair(
    connectingTo address: SocketAddress, tls: TLSContext, serverName: String? = nil
  ) throws(SocketError) -> (input: InputByteStream, output: OutputByteStream) {
    guard !tls.isServer else { throw .tls(TLSError(.wrongSide)) }
    return pair(ByteStreamCore(.address(address), try session(tls, serverName, address)))
  }

  /// Makes the two streams of a connected socket, which is secured when the first of them is opened, and which they
  /// close when both are closed.
  ///
  /// - Parameters:
  ///   - descriptor: A connected stream socket.
  ///   - tls: The settings that the connection shares with others, made of a ``TLSConfiguration`` or, for the other
  ///     end, a ``TLSServerConfiguration``.
  ///   - serverName: The name that the server has to have; with nil, its certificate has to be for the address.
  /// - Throws: ``SocketError/descriptor(_:_:)`` if the descriptor is not a connected socket, ``SocketError/tls(_:)`` if
  ///   the name is not valid; the descriptor then is the caller's.
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

  /// What the ends have agreed on; nil before the handshake is done, and without TLS.
  ///
  /// Can be used from any thread.
  public var tlsInfo: TLSInfo? { lock.isParents ? nil : core.lock.withLock { core.tls?.info } }
}

// Under the lock.
extension ByteStream {
  /// Whether the stream has to wait for room for what is encrypted.
  var hasUnsent: Bool { direction == .writable && core.tls != nil && core.hasUnsent }

  /// Whether nothing is received until there is room for what is encrypted.
  var isClogged: Bool { direction == .readable && core.tls != nil && core.isClogged }

  /// Looks on a loop at a handshake that has begun, as nothing more may come for this stream to find.
  func postHandshake() {
    guard state == .opening, core.isShakingHands else { return }
    _ = post { [self] in ready([]) }
  }

  /// Has a loop report what the session has to be read, which it does not find.
  func postSession() {
    guard core.tls != nil, direction == .readable, state == .open, !isTold, !hasPostedSession, core.isReadable else {
      return
    }
    hasPostedSession = post { [self] in
      lock.withLock { hasPostedSession = false }
      ready(.readable)
    }
  }

  /// Counts the time of the handshake, if it is not counted yet.
  func startHandshakeTimer() {
    guard registrations.timer == nil, let limit = core.tls?.context.handshakeTimeout else { return }
    let timer = RegisteredTimer(deadline: RunLoop.current.instant(after: limit)) { [weak self] timer in
      self?.handshakeTimedOut(timer, limit)
    }
    registrations.replaceTimer(timer)
  }
}

extension ByteStream {
  /// The other stream has gone on with the handshake.
  func handshakeAdvanced() {
    lock.ifOwned { postHandshake() }
  }

  /// On the thread of one of the loops.
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

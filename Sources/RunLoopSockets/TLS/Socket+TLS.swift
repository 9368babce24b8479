// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Begins to connect to an address, and secures the connection when it is made.
  ///
  /// ``Event/connected`` is reported when the peer's identity is verified and the keys are agreed on. Bytes that are
  /// written before wait for that.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - tls: The settings that the connection shares with others, made of a ``TLSConfiguration``.
  ///   - serverName: The name that the server has to have; with nil, its certificate has to be for the address.
  ///   - options: How the socket behaves.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is closed or invalidated.
  /// - Throws: The errors of ``init(connectingTo:options:handler:)``.
  public convenience init(
    connectingTo address: SocketAddress, tls: TLSContext, serverName: String? = nil, options: Options = Options(),
    handler: Handler? = nil
  ) throws(SocketError) {
    guard !tls.isServer else { throw .tls(TLSError(.wrongSide)) }
    var options = options
    options.tls = tls
    options.serverName = serverName
    try self.init(connectingTo: address, options: options, handler: handler)
  }

  /// Secures a connection that both ends have used without TLS until now, as SMTP and other protocols do by a command.
  ///
  /// Queued bytes are sent as they are, and the handshake follows. ``Event/connected`` is reported again when the keys
  /// are agreed on. Bytes that were received before, and that the handler has, were not secured: a program that goes on
  /// to use them trusts anybody. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - context: Made of a ``TLSConfiguration`` or a ``TLSServerConfiguration``.
  ///   - serverName: The name that the server has to have, on a client's side; with nil, its certificate has to be for
  ///     the address.
  /// - Throws: ``SocketError/tls(_:)``; ``SocketError/closedForWriting`` and ``SocketError/invalid`` for a socket that
  ///   is not connected, or of which one side has ended.
  public func startTLS(_ context: TLSContext, serverName: String? = nil) throws(SocketError) {
    let address: SocketAddress? = context.isServer ? nil : try? remoteAddress()
    let session: TLSSession
    do throws(TLSError) {
      session = try TLSSession(context, serverName: serverName, address: address)
    } catch {
      throw .tls(error)
    }
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    guard tls == nil else { throw .tls(TLSError(.alreadySecured, peer: peer)) }
    guard state.phase == .open, !state.hasEnded else { throw .invalid }
    guard state.writing == .open else { throw .closedForWriting }
    queue.withBytes { session.putFirst($0) }
    queue.removeAll()
    begin(session)
    startTimer()?.invalidate()
    sendOutput()
    updateInterest()
  }

  /// What the ends have agreed on; nil before the handshake is done, and without TLS.
  ///
  /// Can be used from any thread.
  public var tlsInfo: TLSInfo? { lock.ifOwned(else: nil) { tls?.info } }

  /// Makes the socket one that is yet to be secured.
  ///
  /// Under the lock, or before the socket is anybody's.
  func begin(_ session: TLSSession) {
    tls = session
    state.secure()
    session.start()
  }
}

extension ListeningSocket {
  /// Begins to listen for connections that are secured.
  ///
  /// A connection is accepted before its handshake, which begins when the connection is in a loop; its
  /// ``Socket/Event/connected`` is reported when the handshake is done.
  ///
  /// - Parameters:
  ///   - address: Where to listen; port zero lets the system choose.
  ///   - tls: The settings that the connections share, made of a ``TLSServerConfiguration``.
  ///   - options: How to listen.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is invalidated.
  /// - Throws: The errors of ``init(at:options:handler:)``.
  public convenience init(
    at address: SocketAddress, tls: TLSContext, options: Options = Options(), handler: Handler? = nil
  ) throws(SocketError) {
    guard tls.isServer else { throw .tls(TLSError(.wrongSide)) }
    var options = options
    options.accepted.tls = tls
    try self.init(at: address, options: options, handler: handler)
  }
}

extension Socket.Options {
  /// The end of a connection that is secured; nil for one that is not.
  func makeSession(connectingTo address: SocketAddress?) throws(SocketError) -> TLSSession? {
    guard let tls else { return nil }
    do throws(TLSError) {
      return try TLSSession(tls, serverName: serverName, address: address)
    } catch {
      throw .tls(error)
    }
  }
}

// Under the lock.
extension Socket {
  /// Whether there are bytes that the system has no room for.
  var hasUnsent: Bool {
    if let tls, tls.hasOutput { return true }
    return queue.count > 0 && state.phase != .securing
  }

  /// The peer, for a person.
  private var peer: String? { descriptor.flatMap { tls?.peer(of: $0, at: errorAddress) } }

  /// Goes on with the handshake, on the loop's thread.
  func shakeHands() {
    guard let tls, let descriptor else { return }
    sendOutput()
    guard state.phase == .securing, !state.isClogged else { return }
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    do throws(SystemError) {
      guard let count = try receiveBytes(buffer, from: descriptor) else { return updateInterest() }
      feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]), UnsafeMutableRawBufferPointer(start: nil, count: 0), tls)
    } catch {
      return close(firstError(failure(error)))
    }
    sendOutput()
    guard state.phase == .securing else { return }
    guard tls.state.hasShakenHands else {
      closeIfFailed()
      return updateInterest()
    }
    state.secured()
    startTimer()?.invalidate()
    tell(.connected)
    guard state.phase == .open else { return }
    endReadingIfDue()
    flush()
    // What has arrived with the handshake is not found by the loop.
    attendToSession()
  }

  /// Gives the session what was received; no bytes are the end.
  @discardableResult
  func feed(
    _ bytes: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer, _ tls: TLSSession
  ) -> Int {
    guard bytes.isEmpty else { return tls.receive(bytes, into: room) }
    if place?.hasEndedInput == true { tls.endedReading() }
    tls.transportEnded()
    return 0
  }

  /// Receives and decrypts, and notes the end or an error; nil: nothing to be notified of.
  func takeSecured(_ bytes: UnsafeMutableRawBufferPointer, from descriptor: OwnedDescriptor, _ tls: TLSSession) -> Int?
  {
    if tls.plain.count > 0 { return tls.takePlain(into: bytes) }
    if !tls.state.hasEnded, !tls.state.hasFailed {
      let buffer = ReceiveBuffers.single.take()
      defer { ReceiveBuffers.single.giveBack(buffer) }
      do throws(SystemError) {
        guard let count = try receiveBytes(buffer, from: descriptor) else { return nil }
        noteReceived()
        let plain = feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]), bytes, tls)
        // A peer may make this end answer.
        sendOutput(of: tls)
        if tls.hasOutput { updateInterest() }
        if plain > 0 {
          state.received()
          return plain
        }
      } catch {
        close(firstError(failure(error)))
        return nil
      }
    }
    if tls.state.hasEnded {
      if state.ended() { close(state.outputFailure) }
      return 0
    }
    closeIfFailed()
    return nil
  }

  /// Responds to what the session has, as far as somebody wants it.
  ///
  /// The loop's thread.
  func attendToSession() { while let tls, tls.isReady, state.receives { receive() } }

  /// Has a loop attend to what the session has, unless one responds to something now.
  func postSession() {
    guard responder == 0, !hasPostedSession, let tls, tls.isReady, state.receives else { return }
    hasPostedSession = post { [self] in
      lock.withLock { hasPostedSession = false }
      ready(.readable)
    }
  }

  /// Sends what is encrypted, as far as there is room.
  @inline(__always)
  func sendOutput() { if let tls { sendOutput(of: tls) } }

  @inline(__always)
  private func sendOutput(of tls: TLSSession) { if tls.hasOutput { sendAll(of: tls) } }

  private func sendAll(of tls: TLSSession) {
    guard let descriptor, !state.isOver else { return }
    guard !state.hasOutputFailed else { return tls.dropOutput() }
    do throws(SystemError) {
      while tls.hasOutput {
        let (sent, isAll) = try tls.withOutput { bytes throws(SystemError) in
          let sent = try descriptor.send(bytes)
          return (sent, sent == bytes.count)
        }
        noteSent(sent)
        tls.sent(sent)
        guard isAll else { break }
      }
      state.isClogged = tls.outputCount >= TLSSession.outputLimit
    } catch {
      failOutput(failure(error))
    }
  }

  /// Encrypts and sends plain bytes, as long as there is room, and returns how many were taken.
  func sendSecured(_ bytes: UnsafeRawBufferPointer, _ tls: TLSSession) -> Int {
    var taken = 0
    sendOutput(of: tls)
    while !state.isOver, !state.hasOutputFailed, !tls.hasOutput, taken < bytes.count {
      taken += tls.write(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
      guard !failIfFailed() else { break }
      sendOutput(of: tls)
    }
    return taken
  }

  /// Notifies the peer of the end; false if that has to wait for room.
  func sendEnd() -> Bool {
    guard let tls else { return true }
    tls.endWriting()
    sendOutput()
    failIfFailed()
    return !state.isOver && !state.hasOutputFailed && !tls.hasOutput
  }

  /// Closes the socket if the session has failed, behind what has been decrypted before that; true if it has failed.
  @discardableResult
  private func failIfFailed() -> Bool {
    guard let tls, let cause = tls.state.failure else { return false }
    if tls.plain.count == 0 { closeFailed(tls) } else { failOutput(.tls(TLSError(cause, peer: peer))) }
    return true
  }

  /// Closes the socket if the session has failed.
  @inline(__always)
  func closeIfFailed() { if let tls, tls.state.hasFailed { closeFailed(tls) } }

  private func closeFailed(_ tls: TLSSession) {
    guard !state.isOver, let descriptor, let cause = tls.state.failure else { return }
    // What the peer has said is the reason; that nothing more came of it is none, if the connection was lost.
    let isEnd = cause == .truncated || cause == .closedDuringHandshake
    let error = SocketError.tls(TLSError(cause, peer: peer))
    close(isEnd ? firstError(error) : error)
    // The alert by which the peer learns why.
    sendLast()
    try? descriptor.shutDown(Int32(SHUT_WR))
    // A descriptor that is closed with bytes unread resets the connection, and the peer may not see the alert.
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    _ = try? receiveBytes(buffer, from: descriptor)
  }

  /// Notifies the peer of the end of a socket that is invalidated, if nothing is missing before it.
  func sayGoodbye() {
    guard let tls, state.phase == .open, !hasUnsent else { return }
    tls.endWriting()
    sendLast()
  }

  /// Sends once what nobody waits for.
  private func sendLast() {
    guard let tls, let descriptor else { return }
    tls.withOutput { bytes in _ = try? descriptor.send(bytes) }
  }

  /// The handshake has taken too long.
  func handshakeTimedOut(_ limit: Duration) -> SocketError {
    .tls(TLSError(.handshakeTimedOut(after: limit), peer: peer))
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Starts connecting to an address, and starts TLS when the connection is established.
  ///
  /// ``Event/connected`` is reported when the handshake is complete and the peer was verified. Bytes that are written
  /// before that are queued.
  ///
  /// - Parameters:
  ///   - address: The address to connect to.
  ///   - tls: The context of the connection, created from a ``TLSConfiguration``.
  ///   - serverName: The name required in the server's certificate. Defaults to `nil`, which requires a certificate
  ///     for the address.
  ///   - options: The configuration of the socket.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is closed or invalidated.
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

  /// Starts TLS on a connection that both ends have used without it, as with the STARTTLS command of SMTP.
  ///
  /// Queued bytes are sent unencrypted, followed by the handshake. ``Event/connected`` is reported again when the
  /// handshake is complete. Bytes that the handler received before were not authenticated, so a program must not rely
  /// on them afterwards. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - context: A context created from a ``TLSConfiguration`` or a ``TLSServerConfiguration``.
  ///   - serverName: For a client, the name required in the server's certificate. Defaults to `nil`, which requires a
  ///     certificate for the address.
  /// - Throws: ``SocketError/tls(_:)``; ``SocketError/closedForWriting`` or ``SocketError/invalid`` if the socket is
  ///   not connected, or if one of its sides has ended.
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

  /// The negotiated parameters of the connection, or `nil` without TLS or before the handshake is complete.
  ///
  /// Can be used from any thread.
  public var tlsInfo: TLSInfo? { lock.ifOwned(else: nil) { tls?.info } }

  /// Attaches a TLS session to the socket and starts its handshake; requires the lock, unless the socket is still being
  /// initialized.
  func begin(_ session: TLSSession) {
    tls = session
    state.secure()
    session.start()
  }
}

extension ListeningSocket {
  /// Starts listening for connections that use TLS.
  ///
  /// A connection is accepted before its handshake, which begins when the connection is added to a loop.
  /// ``Socket/Event/connected`` is reported when the handshake is complete.
  ///
  /// - Parameters:
  ///   - address: The address to listen at; port zero lets the system choose a port.
  ///   - tls: The context of the connections, created from a ``TLSServerConfiguration``.
  ///   - options: The configuration of the socket.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is invalidated.
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
  /// Creates the TLS session of a connection, or returns `nil` if it does not use TLS.
  func makeSession(connectingTo address: SocketAddress?) throws(SocketError) -> TLSSession? {
    guard let tls else { return nil }
    do throws(TLSError) {
      return try TLSSession(tls, serverName: serverName, address: address)
    } catch {
      throw .tls(error)
    }
  }
}

// Each of these requires the lock.
extension Socket {
  /// Whether there are bytes waiting for room in the system's buffer.
  var hasUnsent: Bool {
    if let tls, tls.hasOutput { return true }
    return queue.count > 0 && state.phase != .securing
  }

  private var peer: String? { descriptor.flatMap { tls?.peer(of: $0, at: errorAddress) } }

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
    hasConnected()
    // Bytes that arrived with the handshake do not make the descriptor ready.
    attendToSession()
  }

  /// Passes received bytes to the session; no bytes mean the end of the stream.
  @discardableResult
  func feed(
    _ bytes: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer, _ tls: TLSSession
  ) -> Int {
    guard bytes.isEmpty else { return tls.receive(bytes, into: room) }
    if place?.hasEndedInput == true { tls.endedReading() }
    tls.transportEnded()
    return 0
  }

  /// Receives and decrypts, and records the end or an error, or returns `nil` if there is nothing to report.
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
        // The received bytes may require a response.
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

  /// Delivers what the session has decrypted, as long as there is a reader; must be called on the loop's thread.
  func attendToSession() { while let tls, tls.isReady, state.receives, !isAway { receive() } }

  /// Asks a loop to deliver what the session has decrypted, unless a thread is already responding to an event.
  func postSession() {
    guard responder == 0, !hasPostedSession, let tls, tls.isReady, state.receives else { return }
    hasPostedSession = post { [self] in
      lock.withLock { hasPostedSession = false }
      ready(.readable)
    }
  }

  /// Sends encrypted bytes as far as there is room.
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

  /// Encrypts and sends bytes as long as there is room, and returns the number of bytes taken.
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

  /// Notifies the peer of the end, or returns false if this has to wait for room.
  func sendEnd() -> Bool {
    guard let tls else { return true }
    tls.endWriting()
    sendOutput()
    failIfFailed()
    return !state.isOver && !state.hasOutputFailed && !tls.hasOutput
  }

  /// Closes the socket if the session has failed, after earlier decrypted bytes were delivered, and returns whether it
  /// has failed.
  @discardableResult
  private func failIfFailed() -> Bool {
    guard let tls, let cause = tls.state.failure else { return false }
    if tls.plain.count == 0 { closeFailed(tls) } else { failOutput(.tls(TLSError(cause, peer: peer))) }
    return true
  }

  @inline(__always)
  func closeIfFailed() { if let tls, tls.state.hasFailed { closeFailed(tls) } }

  private func closeFailed(_ tls: TLSSession) {
    guard !state.isOver, let descriptor, let cause = tls.state.failure else { return }
    // An error reported by the peer is the reason. A missing end is not, if the connection was lost.
    let isEnd = cause == .truncated || cause == .closedDuringHandshake
    let error = SocketError.tls(TLSError(cause, peer: peer))
    close(isEnd ? firstError(error) : error)
    // Send the alert that reports the reason to the peer.
    sendLast()
    try? descriptor.shutDown(Int32(SHUT_WR))
    // Closing a descriptor with unread bytes resets the connection, and the peer might not see the alert.
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    _ = try? receiveBytes(buffer, from: descriptor)
  }

  /// Notifies the peer of the end when the socket is invalidated, provided that all bytes before it were sent.
  func sayGoodbye() {
    guard let tls, state.phase == .open, !hasUnsent else { return }
    tls.endWriting()
    sendLast()
  }

  /// Tries once to send the last bytes, and ignores errors.
  private func sendLast() {
    guard let tls, let descriptor else { return }
    tls.withOutput { bytes in _ = try? descriptor.send(bytes) }
  }

  /// Returns the error of a handshake whose time limit has passed.
  func handshakeTimedOut(_ limit: Duration) -> SocketError {
    .tls(TLSError(.handshakeTimedOut(after: limit), peer: peer))
  }
}

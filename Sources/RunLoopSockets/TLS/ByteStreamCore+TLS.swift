// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// The transfer of bytes between the streams and the channel, with or without encryption.
extension ByteStreamCore {
  func receive(
    _ bytes: UnsafeMutableRawBufferPointer, from channel: ByteChannel
  ) throws(SocketError) -> ByteStream.Transfer {
    guard let tls else {
      do throws(SystemError) {
        guard let count = try channel.receive(bytes) else { return .nothing }
        if count == 0, let lost = lock.withLock({ outputFailure }), lost.endsConnection { throw lost }
        return count == 0 ? .end : .some(count)
      } catch {
        throw failure(lock.withLock { outputFailure } ?? error)
      }
    }
    lock.lock()
    defer { lock.unlock() }
    if tls.plain.count == 0 { try pump(channel.descriptor, tls) }
    if tls.plain.count > 0 { return .some(tls.takePlain(into: bytes)) }
    try check(channel.descriptor, tls)
    return tls.state.hasEnded ? .end : .nothing
  }

  func send(
    _ bytes: UnsafeRawBufferPointer, to channel: ByteChannel
  ) throws(SocketError) -> ByteStream.Transfer {
    guard let tls else {
      do throws(SystemError) {
        let count = try channel.send(bytes)
        return count == 0 ? .nothing : .some(count)
      } catch {
        throw failure(lock.withLock { failOutput(error) })
      }
    }
    lock.lock()
    defer { lock.unlock() }
    flush(channel.descriptor, tls)
    guard !tls.hasOutput else { return .nothing }
    let count = outputFailure == nil ? tls.write(bytes) : 0
    flush(channel.descriptor, tls)
    if let outputFailure { throw failure(outputFailure) }
    guard count == 0 else { return .some(count) }
    try check(channel.descriptor, tls)
    return .nothing
  }

  /// Prepares for the notification of a stream, or returns false if there is nothing to notify it of.
  func prepare(_ direction: RunLoop.DescriptorSource.Events, _ channel: ByteChannel?) -> Bool {
    guard let tls, let descriptor = channel?.descriptor else { return true }
    lock.lock()
    defer { lock.unlock() }
    if direction == .writable {
      // A failure is ignored here: the next write reports it.
      flush(descriptor, tls)
      return !tls.hasOutput || tls.state.hasFailed
    }
    // Send the bytes that suspend receiving first.
    if isClogged(tls) { flush(descriptor, tls) }
    do throws(SocketError) {
      if !tls.isReady { try pump(descriptor, tls) }
    } catch {
      return true
    }
    return tls.isReady
  }

  /// Advances connecting and the handshake, and returns true once the connection can be used.
  func advance() throws(SocketError) -> Bool {
    do throws(SystemError) {
      try finishConnecting()
    } catch {
      throw failure(error)
    }
    guard let tls else { return true }
    lock.lock()
    defer { lock.unlock() }
    guard case .connected(let channel) = link else { return false }
    let descriptor = channel.descriptor
    if !hasBegun {
      hasBegun = true
      tls.start()
    }
    if tls.state.isHandshaking {
      flush(descriptor, tls)
      try pump(descriptor, tls)
    }
    if !tls.state.hasShakenHands { try check(descriptor, tls) }
    return tls.state.hasShakenHands
  }

  /// Fails the handshake because its time limit has passed.
  func handshakeTimedOut(_ limit: Duration) -> SocketError {
    lock.lock()
    defer { lock.unlock() }
    guard let tls, case .connected(let channel) = link else { return .timedOut(after: limit, address: address) }
    tls.fail(.handshakeTimedOut(after: limit))
    return .tls(TLSError(.handshakeTimedOut(after: limit), peer: tls.peer(of: channel.descriptor, at: address)))
  }

  /// The events that a stream watches for while it is being opened.
  var openingInterest: RunLoop.DescriptorSource.Events {
    lock.withLock {
      guard let tls, hasBegun else { return .writable }
      return tls.hasOutput ? [.readable, .writable] : .readable
    }
  }

  /// Whether the handshake has begun, so that its result may have arrived before a stream watches for it.
  var isShakingHands: Bool { tls != nil && lock.withLock { hasBegun } }

  var hasUnsent: Bool { lock.withLock { tls?.hasOutput == true } }

  /// Whether receiving is suspended because too many encrypted bytes are waiting to be sent.
  var isClogged: Bool { lock.withLock { tls.map { isClogged($0) } ?? false } }

  private func isClogged(_ tls: TLSSession) -> Bool { tls.outputCount >= TLSSession.outputLimit }

  /// Whether there is something to read that does not make the descriptor ready.
  var isReadable: Bool { lock.withLock { tls?.isReady ?? false } }

  func other(than stream: ByteStream) -> ByteStream? { lock.withLock { stream === input ? output : input } }

  private func pump(_ descriptor: OwnedDescriptor, _ tls: TLSSession) throws(SocketError) {
    guard tls.state.isHandshaking || tls.state.reads, !isClogged(tls) else { return }
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    do throws(SystemError) {
      guard let count = try descriptor.receive(buffer) else { return }
      if count == 0 {
        tls.transportEnded()
      } else {
        let room = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        _ = tls.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), into: room)
      }
      // Send the response, or the alert that reports the failure to the peer.
      flush(descriptor, tls)
    } catch {
      // Decrypted bytes, or an earlier failure, are reported first.
      if !tls.isReady { throw failure(outputFailure ?? error) }
    }
  }

  /// Sends encrypted bytes as far as there is room; after a failure they are dropped.
  private func flush(_ descriptor: OwnedDescriptor, _ tls: TLSSession) {
    if outputFailure != nil { tls.dropOutput() }
    do throws(SystemError) {
      while tls.hasOutput {
        let (sent, isAll) = try tls.withOutput { bytes throws(SystemError) in
          let sent = try descriptor.send(bytes)
          return (sent, sent == bytes.count)
        }
        tls.sent(sent)
        guard isAll else { return }
      }
    } catch {
      failOutput(error)
    }
  }

  private func check(_ descriptor: OwnedDescriptor, _ tls: TLSSession) throws(SocketError) {
    guard let cause = tls.state.failure else { return }
    // If the connection was lost, that is the reason for the missing end.
    if let outputFailure, cause == .truncated || cause == .closedDuringHandshake { throw failure(outputFailure) }
    throw .tls(TLSError(cause, peer: tls.peer(of: descriptor, at: address)))
  }

  /// Notifies the peer of the end, or returns false if bytes are still waiting to be sent; requires the lock.
  func sendEnd(_ descriptor: OwnedDescriptor) -> Bool {
    guard let tls else { return true }
    tls.endWriting()
    // If the connection is lost, this drops the output.
    flush(descriptor, tls)
    return !tls.hasOutput
  }

  /// Whether more may arrive from the peer, such as session tickets, although the application no longer reads; requires
  /// the lock.
  var awaitsPeer: Bool { tls.map { $0.state.hasShakenHands && $0.state.failure == nil && !$0.state.hasEnded } ?? false }

  /// Continues ending a closed stream, and returns the events to watch for, or `nil` when it is done; requires the
  /// lock.
  private func lingeringInterest(_ descriptor: OwnedDescriptor) -> RunLoop.DescriptorSource.Events? {
    guard sendEnd(descriptor) else { return .writable }
    do throws(SystemError) {
      try descriptor.shutDown(Int32(SHUT_WR))
      // The other stream still reads.
      guard openSides == 0 else { return nil }
      // Closing a descriptor with unread bytes, such as session tickets, resets the connection and loses bytes that
      // the system has not sent yet. Discard incoming bytes until the peer ends.
      let buffer = ReceiveBuffers.single.take()
      defer { ReceiveBuffers.single.giveBack(buffer) }
      return try descriptor.receive(buffer) == 0 ? nil : .readable
    } catch {
      // If the connection is lost, there is nothing to wait for.
      return nil
    }
  }

  /// Sends the remaining bytes of a closed stream on its former loops or, if there are none, on the service thread.
  ///
  /// If both streams are closed, the descriptor stays open until the peer has received everything, at most for the
  /// time limit of a handshake.
  func linger(_ channel: ByteChannel, in former: [(loop: RunLoop, mode: RunLoop.Mode)]) {
    let descriptor = channel.descriptor
    var places = former.filter { !$0.loop.takesNoItems }
    if places.isEmpty { places = [(ServiceThread.loop, .default)] }
    let source = RunLoop.DescriptorSource(descriptor: descriptor.number, events: .writable) { [self] source, _ in
      do throws(RunLoopError) {
        guard let next = lock.withLock({ lingeringInterest(descriptor) }) else { return endLingering(source) }
        if next != source.events { try source.watch(for: next) }
      } catch {
        endLingering(source)
      }
    }
    let limit = tls?.context.handshakeTimeout ?? .seconds(30)
    var timer = RegisteredTimer(deadline: places[0].loop.instant(after: limit)) { [weak self, weak source] _ in
      if let source { self?.endLingering(source) }
    }
    for place in places { timer.enter(place.loop, place.mode) }
    lock.withLock { lingering = timer }
    // A loop that has ended rejects the source.
    for place in places { try? place.loop.add(source, forMode: place.mode) }
  }

  private func endLingering(_ source: RunLoop.DescriptorSource) {
    source.invalidate()
    let timer = lock.withLock {
      defer { lingering = nil }
      return lingering
    }
    timer?.invalidate()
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// Handling of the descriptor's events, on a loop's thread.
extension DatagramSocket {
  /// Responds to events of the descriptor, and delivers kept datagrams; requires the lock, which is released during
  /// call-outs.
  func respond(to events: RunLoop.DescriptorSource.Events) {
    var called = CalledHandler(body: body, serial: bodySerial)
    if state.room != .notAwaited, !events.isEmpty, events != .readable { tellRoom(&called) }
    if state.receives, events != .writable { receive(&called) } else { updateInterest() }
    // Dropping the last notification also clears a pending error, which must be received first.
    if events.contains(.error), state.isOpen { descriptor?.dropNotes() }
    guard called.serial != bodySerial else { return }
    // The socket has a new handler, so this may be the last reference to the old one. Release it without the lock.
    lock.unlock()
    called.body = nil
    lock.lock()
  }

  /// Requires the lock, which is released during call-outs.
  @inline(never)
  private func tellRoom(_ called: inout CalledHandler) {
    guard state.takeRoom() else { return }
    updateInterest()
    if let waiting = writer.take() {
      lock.unlock()
      waiting.resume()
      lock.lock()
    }
    // A task may have closed the socket in the meantime.
    if state.isOpen { tell(.writable, &called) }
  }

  /// Whether this loop receives datagrams; false after the handler has removed the socket from it.
  private var receives: Bool { state.receives && !isAway }

  /// Requires the lock, which is released during call-outs.
  private func receive(_ called: inout CalledHandler) {
    let interest = state.interest
    passOnKept(&called)
    if receives, let descriptor = descriptor?.number {
      let size = min(max(1, options.maximumDatagramSize), Self.mostBytes)
      if state.batch.isBurst, !state.hasWaiter, size <= ReceiveBuffers.single.size {
        receiveBurst(from: descriptor, size, &called)
      } else {
        receiveSingly(from: descriptor, size, &called)
      }
    }
    // Pass changes made by a handler on to the source.
    if state.interest != interest { updateInterest() }
  }

  private func receiveSingly(from descriptor: Int32, _ size: Int, _ called: inout CalledHandler) {
    let buffers = ReceiveBuffers.single
    let whole = size <= buffers.size ? buffers.take() : .allocate(byteCount: size, alignment: 64)
    defer { if size <= buffers.size { buffers.giveBack(whole) } else { whole.deallocate() } }
    let bytes = UnsafeMutableRawBufferPointer(rebasing: whole[..<size])
    withUnsafeTemporaryAllocation(byteCount: SocketAddress.capacity, alignment: 8) { sender in
      receive(from: descriptor, bytes, sender, &called)
    }
  }

  /// Receives the datagrams of a service, with one system call for each.
  ///
  /// All work for a datagram is inlined here, because after a system call the processor mispredicts function returns.
  @inline(__always)
  private func receive(
    from descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ sender: UnsafeMutableRawBufferPointer,
    _ called: inout CalledHandler
  ) {
    let limit = state.batch.limit
    var taken = 0
    var isEmpty = false
    // A handler may close the socket, which then receives no more.
    while taken < limit, receives {
      do throws(SystemError) {
        var beside: Datagram.Extras?
        guard let (count, senderCount) = try receiveOne(from: descriptor, buffer, sender, &beside) else {
          isEmpty = true
          break
        }
        taken += 1
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(buffer.count, count)])
        let address = UnsafeRawBufferPointer(rebasing: sender[..<senderCount])
        passOn(bytes, envelope(count, bytes, address, beside), &called)
      } catch {
        respond(to: error, &called)
        break
      }
    }
    // If a handler paused the socket, or an error occurred, the number received says nothing about the rate.
    if isEmpty || taken == limit { state.batch.noteService(count: taken, isEmpty: isEmpty) }
  }

  @inline(__always)
  private func receiveOne(
    from descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ sender: UnsafeMutableRawBufferPointer,
    _ beside: inout Datagram.Extras?
  ) throws(SystemError) -> (count: Int, senderCount: Int)? {
    guard let extras, !extras.refusesDescriptors else {
      return try DatagramCall.receive(from: descriptor, buffer, sender: sender)
    }
    guard let received = try DatagramCall.receive(from: descriptor, buffer, sender: sender, extras) else { return nil }
    beside = received.extras
    return (received.count, received.senderCount)
  }

  /// Receives the datagrams of a service with one system call.
  private func receiveBurst(from descriptor: Int32, _ size: Int, _ called: inout CalledHandler) {
    let memory = ReceiveBuffers.burst.take()
    defer { ReceiveBuffers.burst.giveBack(memory) }
    do throws(SystemError) {
      burst =
        try DatagramBurst(
          from: descriptor, size: size, in: memory, extras?.refusesDescriptors == true ? nil : extras)
        ?? DatagramBurst()
    } catch {
      return respond(to: error, &called)
    }
    state.batch.noteService(count: burst.remaining, isEmpty: burst.remaining < DatagramBurst.most)
    let loop = RunLoop.current
    if burst.remaining > 1 { loop.unreadItem = self }
    while receives, let next = burst.takeNext() {
      passOn(next.bytes, envelope(next.byteCount, next.bytes, next.sender, extras.flatMap(burst.extras)), &called)
    }
    loop.unreadItem = nil
    // The socket was paused, or a nested run in a handler did not take all datagrams.
    keepRest()
    passOnKept(&called)
  }

  @inline(__always)
  private func passOn(_ bytes: UnsafeRawBufferPointer, _ envelope: Datagram.Envelope, _ called: inout CalledHandler) {
    if state.hasWaiter, let waiting = reader.take() {
      state.hasWaiter = false
      let datagram = Datagram(bytes: Array(bytes), envelope: envelope)
      lock.unlock()
      waiting.resume(returning: datagram)
      lock.lock()
    } else {
      tell(.received(bytes.bytes, envelope), &called)
    }
  }

  @inline(__always)
  private func envelope(
    _ count: Int, _ bytes: UnsafeRawBufferPointer, _ sender: UnsafeRawBufferPointer, _ beside: Datagram.Extras?
  ) -> Datagram.Envelope {
    Datagram.Envelope(
      sender: address(sender), byteCount: count, isTruncated: count > bytes.count, extras: beside)
  }

  /// The maximum size of a received datagram in bytes.
  private static let mostBytes = 1 << 20

  /// Returns the sender's address, reusing the previous one if it is equal.
  @inline(__always)
  private func address(_ bytes: UnsafeRawBufferPointer) -> SocketAddress? {
    if let lastSender, lastSender.isMade(of: bytes) { return lastSender }
    return newAddress(bytes)
  }

  @inline(never)
  private func newAddress(_ bytes: UnsafeRawBufferPointer) -> SocketAddress? {
    lastSender = bytes.isEmpty ? nil : SocketAddress(bytes: bytes)
    return lastSender
  }

  @inline(never)
  private func respond(to error: SystemError, _ called: inout CalledHandler) {
    let own = peer == nil ? (try? descriptor?.ownAddress()) ?? nil : nil
    let reason = DatagramError.system(error, address: peer ?? own?.unlessUnnamed)
    switch error.number {
    case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP, EFAULT, ENOTCONN: close(reason)
    case ENOMEM, ENOBUFS:
      postpone()
      tell(.failed(reason), &called)
    default:
      // Tasks are not notified: the next attempt to send reports the error, and a datagram may still arrive.
      tell(.failed(reason), &called)
    }
  }

  /// Calls the handler; requires the lock, which is released during the call.
  @inline(__always)
  private func tell(_ event: Event, _ called: inout CalledHandler) {
    let old = called.serial == bodySerial ? nil : renew(&called)
    lock.unlock()
    withExtendedLifetime(old) {}
    noteCall(of: called.body)
    called.body?.handler(self, event)
    lock.lock()
  }

  /// Switches to the current handler, and returns the previous one, to be released without the lock.
  @inline(never)
  private func renew(_ called: inout CalledHandler) -> Body? {
    let old = called.body
    called = CalledHandler(body: body, serial: bodySerial)
    return old
  }

  private func passOnKept(_ called: inout CalledHandler) {
    guard receives, !kept.isEmpty else { return }
    let loop = RunLoop.current
    while receives, !kept.isEmpty {
      let next = kept.removeFirst()
      if !kept.isEmpty { loop.unreadItem = self }
      next.bytes.withUnsafeBytes { passOn($0, next.envelope, &called) }
      loop.unreadItem = nil
    }
  }

  /// The handler of a thread's current service, retained once rather than for each call.
  private struct CalledHandler {
    var body: Body?
    let serial: Int
  }
}

// Datagrams that were received but not delivered yet.
extension DatagramSocket: UnreadItem {
  /// Called when a nested run begins in a handler during a burst, so that the run finds the remaining datagrams.
  package func runBegins() {
    guard lock.lockUnlessParents() else { return }
    keepRest()
    offerKept()
    lock.unlock()
  }

  /// Keeps the remaining datagrams of a burst; requires the lock.
  private func keepRest() {
    while state.isOpen, let next = burst.takeNext() {
      let envelope = envelope(next.byteCount, next.bytes, next.sender, extras.flatMap(burst.extras))
      kept.append(Datagram(bytes: Array(next.bytes), envelope: envelope))
    }
    burst = DatagramBurst()
  }

  /// Starts a timer to deliver kept datagrams, which do not make the descriptor ready, once there is a receiver;
  /// requires the lock.
  func offerKept() {
    guard !kept.isEmpty, state.receives, registrations.timer == nil else { return }
    receiveAgain(after: .zero)
  }
}

extension SocketAddress {
  fileprivate func isMade(of other: UnsafeRawBufferPointer) -> Bool {
    guard let start = other.baseAddress, bytes.count == other.count else { return false }
    return bytes.withUnsafeBytes { own in own.baseAddress.map { memcmp($0, start, other.count) == 0 } ?? false }
  }
}

extension DatagramSocket {
  /// Stops receiving.
  ///
  /// Datagrams that arrive wait in the system as far as there is room. Can be called from any thread. Calling it again
  /// has no effect.
  public func pauseReading() { setPaused(true) }

  /// Resumes receiving.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func resumeReading() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    lock.ifOwned {
      state.isPaused = isPaused
      updateInterest()
    }
  }
}

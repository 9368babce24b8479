// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

// What a loop has found, on its thread.
extension DatagramSocket {
  /// Responds to what the descriptor is ready for, or, for nothing, tells the end that has been noted.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    let thread = pthread_self()
    lock.lock()
    // Of several loops one responds at a time; a run nested in the handler does too.
    guard responder == 0 || responder == thread else { return lock.unlock() }
    let outer = responder
    responder = thread
    if !events.isEmpty, state.phase == .open {
      if state.room != .notAwaited, events != .readable { tellRoom() }
      if state.receives, events != .writable { receive() } else { updateInterest() }
    }
    responder = outer
    guard case .closing(let error) = state.phase else { return lock.unlock() }
    let body = body
    let remains = finish()
    lock.unlock()
    remains?.release(error)
    noteCall(of: body)
    body?.handler(self, .closed(error))
  }

  /// Under the lock, which is not held during call-outs.
  private func tellRoom() {
    guard state.takeRoom() else { return }
    updateInterest()
    guard let waiting = writer.take() else { return tell(.writable) }
    lock.unlock()
    waiting.resume()
    lock.lock()
  }

  private func receive() {
    let size = min(max(1, options.receiveLimit), Self.mostBytes)
    let buffers = ReceiveBuffers.shared
    let whole = size <= ReceiveBuffers.size ? buffers.take() : .allocate(byteCount: size, alignment: 64)
    defer { if size <= ReceiveBuffers.size { buffers.giveBack(whole) } else { whole.deallocate() } }
    let buffer = UnsafeMutableRawBufferPointer(rebasing: whole[..<size])
    var taken = 0
    while taken < DatagramState.batch, state.receives, let descriptor {
      guard let next = take(buffer, from: descriptor) else { break }
      taken += 1
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(size, next.byteCount)])
      if let waiting = reader.take() {
        state.hasWaiter = false
        let datagram = Datagram(bytes: Array(bytes), envelope: next)
        lock.unlock()
        waiting.resume(returning: datagram)
        lock.lock()
      } else {
        tell(.received(bytes.bytes, next))
      }
    }
    updateInterest()
  }

  /// The longest datagram that is received.
  private static let mostBytes = 1 << 20

  /// Receives one datagram, or tells an error; nil: there is nothing more now.
  ///
  /// Under the lock.
  private func take(_ bytes: UnsafeMutableRawBufferPointer, from descriptor: OwnedDescriptor) -> Datagram.Envelope? {
    do throws(SystemError) {
      return try withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) {
        sender throws(SystemError) -> Datagram.Envelope? in
        guard let (count, senderCount) = try descriptor.receive(bytes, sender: sender) else { return nil }
        return Datagram.Envelope(
          sender: address(UnsafeRawBufferPointer(rebasing: sender[..<senderCount])), byteCount: count,
          isTruncated: count > bytes.count)
      }
    } catch {
      respond(to: error)
      return nil
    }
  }

  /// The address of a sender, made anew if it is another than the last.
  private func address(_ bytes: UnsafeRawBufferPointer) -> SocketAddress? {
    if let lastSender, lastSender.isMade(of: bytes) { return lastSender }
    lastSender = bytes.isEmpty ? nil : SocketAddress(bytes: bytes)
    return lastSender
  }

  private func respond(to error: SystemError) {
    let reason = DatagramError.system(error, address: peer)
    switch error.number {
    case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP, EFAULT, ENOTCONN: close(reason)
    case ENOMEM, ENOBUFS:
      postpone()
      tell(.failed(reason))
    default:
      // A task is told by its next attempt to send; what it waits for may still arrive.
      tell(.failed(reason))
    }
  }

  /// Calls the handler, without the lock.
  private func tell(_ event: Event) {
    var body = body
    lock.unlock()
    noteCall(of: body)
    body?.handler(self, event)
    // One that was replaced meanwhile goes here.
    body = nil
    lock.lock()
  }
}

extension SocketAddress {
  fileprivate func isMade(of other: UnsafeRawBufferPointer) -> Bool {
    guard let start = other.baseAddress, bytes.count == other.count else { return false }
    return bytes.withUnsafeBytes { own in own.baseAddress.map { memcmp($0, start, other.count) == 0 } ?? false }
  }
}

extension DatagramSocket {
  /// Stops receiving: what arrives waits in the system, as far as there is room.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func pauseReceiving() { setPaused(true) }

  /// Receives again.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func resumeReceiving() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    guard !lock.isParents else { return }
    lock.lock()
    state.isPaused = isPaused
    updateInterest()
    lock.unlock()
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Sends as many bytes as the system accepts now, and queues the rest.
  ///
  /// Before the connection is established, all bytes are queued. The bytes of one call stay together. Can be called
  /// from any thread.
  ///
  /// - Returns: Whether to continue writing. False if ``Options/highWater`` is reached, in which case
  ///   ``Event/writable`` reports when there is room, or if an error has occurred, which ``Event/closed(_:)`` reports
  ///   after the received bytes.
  /// - Throws: ``SocketError/bufferFull(limit:)`` if `highWater` was already reached, which bounds the queue to
  ///   `highWater` plus one write; ``SocketError/closedForWriting``; the error of an earlier write, after which nothing
  ///   can be written; the error that ended the connection; or ``SocketError/invalid``. No bytes are queued then.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Bool {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    if state.isOver {
      guard case .closing = state.phase else { throw state.endError ?? .invalid }
      return false
    }
    guard state.writing == .open else {
      guard let failure = state.outputFailure else { throw .closedForWriting }
      state.oweRoom()
      postFailure()
      throw failure
    }
    guard queue.count < max(1, options.highWater) else {
      state.oweRoom()
      throw .bufferFull(limit: options.highWater)
    }
    var rest = bytes
    if state.isOpen, !hasUnsent {
      let sent = send(bytes)
      guard !state.isOver else { return false }
      guard !state.hasOutputFailed else {
        state.oweRoom()
        postFailure()
        return false
      }
      rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
    }
    guard !rest.isEmpty || tls?.hasOutput == true else { return true }
    queue.append(rest)
    updateInterest()
    // The loop may fail to watch for room, which ends the socket.
    guard !state.isOver else { return false }
    guard queue.count >= options.highWater else { return true }
    state.oweRoom()
    return false
  }

  /// Sends bytes, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  @discardableResult
  public func write(_ bytes: [UInt8]) throws(SocketError) -> Bool {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SocketError) in try write(bytes) }
    }
    return try result.get()
  }

  /// Sends bytes, such as those of ``Event/received(_:)``, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  @discardableResult
  public func write(_ bytes: RawSpan) throws(SocketError) -> Bool {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SocketError) in try write(bytes) }
    }
    return try result.get()
  }

  /// Sends a text as UTF-8, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  @discardableResult
  public func write(_ text: String) throws(SocketError) -> Bool { try write(Array(text.utf8)) }

  /// The sides of a connection.
  public enum Side: Hashable, Sendable {
    /// The bytes from the peer.
    case read
    /// The bytes to the peer.
    case write
    /// Both sides.
    case both
  }

  /// Ends one side of the connection, or both.
  ///
  /// The writing side ends when the queued bytes have been sent; the peer then sees the end of the stream. The reading
  /// side ends as if the peer had finished writing. Both wait until the connection is established and, with TLS,
  /// secured. When both sides have ended, the socket is closed and the handler is notified. Can be called from any
  /// thread. Calling it again, or on a closed socket, has no effect.
  ///
  /// The corresponding system call is `shutdown`. Its errors are reported by ``Event/closed(_:)``.
  public func shutDown(_ side: Side) {
    guard lock.lockUnlessParents() else { return }
    defer { lock.unlock() }
    if side != .read {
      switch state.endWriting(isQueueEmpty: queue.count == 0) {
      case .nothing: break
      case .now: endWritingIfDue()
      // Also while the socket is connecting.
      case .later: updateInterest()
      }
    }
    if side != .write {
      endsReading = true
      endReadingIfDue()
    }
  }

  /// Shuts the reading side down if this was requested and the connection is established; requires the lock.
  func endReadingIfDue() {
    guard endsReading, state.phase == .open, !state.hasEnded, let descriptor else { return }
    do throws(SystemError) {
      try descriptor.shutDown(Int32(SHUT_RD))
      tls?.endedReading()
      updateInterest()
    } catch {
      // If the connection is lost, the bytes that have arrived and the error can still be received.
      if error.number != ENOTCONN { close(failure(error)) }
    }
  }

  /// Shuts the writing side down if this was requested and nothing is queued; requires the lock.
  func endWritingIfDue() {
    guard state.writing == .ending, state.phase == .open, queue.count == 0, let descriptor else { return }
    guard sendEnd() else { return updateInterest() }
    do throws(SystemError) {
      try descriptor.shutDown(Int32(SHUT_WR))
      if state.writingEnded() { close(nil) }
      updateInterest()
    } catch {
      failShutDown(error)
    }
  }

  /// Sends queued bytes, and notifies waiting writers if there is room; called on the loop's thread with the lock held.
  func flush() {
    if queue.count == 0 { sendOutput() }
    let sent = queue.withBytes { send($0) }
    guard !state.isOver, !state.hasOutputFailed else { return }
    queue.removeFirst(sent)
    endWritingIfDue()
    updateInterest()
    guard state.takeRoom(queued: queue.count, lowWater: max(0, options.lowWater)) else { return }
    if let waiting = writer.take() {
      lock.unlock()
      waiting.resume()
      lock.lock()
    }
    // Tasks are also resumed after the writing side has ended, because their bytes have been sent.
    if state.writing == .open { tell(.writable) }
  }

  /// Makes one send call, and records an error; requires the lock.
  private func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard !bytes.isEmpty else { return 0 }
    if let tls { return sendSecured(bytes, tls) }
    guard let descriptor else { return 0 }
    do throws(SystemError) {
      let count = try descriptor.send(bytes)
      noteSent(count)
      return count
    } catch {
      failOutput(failure(error))
      return 0
    }
  }
}

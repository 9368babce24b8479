// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Sends bytes: at once as far as there is room, the rest when there is room.
  ///
  /// Before the connection is made, the bytes wait for it. Can be called from any thread. The bytes of one call stay
  /// together.
  ///
  /// - Returns: Whether to go on. False if ``Options/highWater`` is reached, and ``Event/writable`` will report when
  ///   there is room; or if an error has happened, which ``Event/closed(_:)`` will report behind what was received.
  /// - Throws: ``SocketError/bufferFull(limit:)`` if `highWater` was reached before, so that the queued bytes stay
  ///   below `highWater` and one more write; ``SocketError/closedForWriting``, ``SocketError/invalid``; the error of an
  ///   earlier write, after which nothing can be written. Then no bytes are taken.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Bool {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    if state.isOver {
      guard case .closing = state.phase else { throw .invalid }
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
    // The loop may be unable to wait for room, and then the socket is over.
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

  /// Sends a text in UTF-8, as ``write(_:)-(UnsafeRawBufferPointer)`` does.
  @discardableResult
  public func write(_ text: String) throws(SocketError) -> Bool { try write(Array(text.utf8)) }

  /// One side of a connection, or both.
  public enum Side: Hashable, Sendable {
    /// The bytes from the peer.
    case read
    /// The bytes to the peer.
    case write
    /// Both.
    case both
  }

  /// Ends one side of the connection.
  ///
  /// The writing side ends when the queued bytes have been sent; the peer then sees the end. The reading side ends as
  /// if the peer had written its last byte. Before the connection is made, or secured, both wait for that. When both
  /// sides have ended, the socket is closed, of which the handler is notified. Can be called from any thread. Calling
  /// it again, or on a closed socket, has no effect.
  ///
  /// The corresponding system call is `shutdown`; its error is reported by ``Event/closed(_:)``.
  public func shutDown(_ side: Side) {
    guard lock.lockUnlessParents() else { return }
    defer { lock.unlock() }
    if side != .read {
      switch state.endWriting(isQueueEmpty: queue.count == 0) {
      case .nothing: break
      case .now: endWritingIfDue()
      // While it connects too.
      case .later: updateInterest()
      }
    }
    if side != .write {
      endsReading = true
      endReadingIfDue()
    }
  }

  /// Shuts the reading side down if that is wanted and the connection is made.
  ///
  /// Under the lock.
  func endReadingIfDue() {
    guard endsReading, state.phase == .open, !state.hasEnded, let descriptor else { return }
    do throws(SystemError) {
      try descriptor.shutDown(Int32(SHUT_RD))
      tls?.endedReading()
      updateInterest()
    } catch {
      // Of a connection that is lost, what has arrived and the error are received as they are.
      if error.number != ENOTCONN { close(failure(error)) }
    }
  }

  /// Shuts the writing side down if that is wanted and nothing is queued.
  ///
  /// Under the lock.
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

  /// Sends what is queued, and reports that there is room if somebody waits for that.
  ///
  /// Under the lock; the loop's thread.
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
    // Tasks are resumed after the end of the writing side, too: their bytes have been sent.
    if state.writing == .open { tell(.writable) }
  }

  /// Sends once, and notes an error.
  ///
  /// Under the lock.
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

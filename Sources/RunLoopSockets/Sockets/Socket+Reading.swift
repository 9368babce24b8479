// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Reads the bytes that have arrived, without waiting.
  ///
  /// Call this in a handler of ``Event/readable``, which is reported again when more bytes arrive. Can be called from
  /// any thread.
  ///
  /// - Returns: The number of bytes read, 0 at the end of the stream, or `nil` if no bytes have arrived.
  /// - Throws: ``SocketError/invalid``. If the connection has failed, this returns `nil`, and ``Event/closed(_:)``
  ///   reports the error.
  public func read(into bytes: UnsafeMutableRawBufferPointer) throws(SocketError) -> Int? {
    guard lock.lockUnlessParents() else { throw .invalid }
    defer { lock.unlock() }
    guard state.phase != .closed, let descriptor else { throw .invalid }
    guard state.phase == .open else { return nil }
    guard !state.hasEnded, !bytes.isEmpty else { return 0 }
    state.hasRead()
    let count = take(bytes, from: descriptor)
    updateInterest()
    return count
  }

  /// Stops receiving, so that the peer has to wait once the system's buffers are full.
  ///
  /// An error is held back until receiving is resumed and the bytes before it were delivered. If there are no such
  /// bytes, it is reported at once. A write that encounters the error throws it. Bytes that are being received at the
  /// time of the call are still reported. Can be called from any thread. Calling it again has no effect.
  public func pauseReading() { setPaused(true) }

  /// Resumes receiving.
  ///
  /// Can be called from any thread. Calling it again has no effect.
  public func resumeReading() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    lock.ifOwned {
      state.isPaused = isPaused
      updateInterest()
      if state.hasOutputFailed {
        closeIfNothingIsLeft()
        postFailure()
      }
    }
  }

  /// Receives once, for the handler or the waiting task; called on the loop's thread with the lock held.
  func receive() {
    switch state.taker {
    case .nobody: break
    case .handler: receiveForHandler()
    case .request:
      state.toldReadable()
      tell(.readable)
      // Updating after the call-out saves a system call if the handler has read the bytes.
      updateInterest()
    case .waiter: receiveForTask()
    }
  }

  private func receiveForHandler() {
    guard let descriptor else { return }
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    guard let count = take(buffer, from: descriptor) else { return }
    guard count == 0 else { return tell(.received(UnsafeRawBufferPointer(rebasing: buffer[..<count]).bytes)) }
    updateInterest()
    tell(.ended)
  }

  private func receiveForTask() {
    guard let descriptor else { return }
    var received: Int?
    let limit = readerLimit
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
      received = take(UnsafeMutableRawBufferPointer(buffer), from: descriptor)
      initialized = received ?? 0
    }
    guard let received else { return }
    let waiting = reader.take()
    state.taker = handlerTaker
    updateInterest()
    lock.unlock()
    waiting?.resume(returning: received == 0 ? nil : bytes)
    lock.lock()
  }

  /// Receives into a buffer and records the end or an error, or returns `nil` if there is nothing to report; requires
  /// the lock.
  func take(_ bytes: UnsafeMutableRawBufferPointer, from descriptor: OwnedDescriptor) -> Int? {
    if let tls { return takeSecured(bytes, from: descriptor, tls) }
    do throws(SystemError) {
      guard let count = try receiveBytes(bytes, from: descriptor) else { return nil }
      noteReceived()
      guard count > 0 else { return inputEnded() }
      state.received()
      return count
    } catch {
      close(firstError(failure(error)))
      return nil
    }
  }
}

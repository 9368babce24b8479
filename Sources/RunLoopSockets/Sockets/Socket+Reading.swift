// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Reads the bytes that have arrived, without waiting.
  ///
  /// For handlers of ``Event/readable``, which is reported again when something arrives after this. Can be called from
  /// any thread.
  ///
  /// - Returns: How many bytes were read, zero at the end, nil if there is nothing yet.
  /// - Throws: ``SocketError/invalid``. An error of the connection is reported by ``Event/closed(_:)``, and nil is
  ///   returned.
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

  /// Stops receiving, so that the peer has to wait when the system's buffers are full.
  ///
  /// An error waits behind the bytes that have arrived: it is reported when receiving is resumed and they were
  /// delivered, or at once if there are none; a write that finds it throws it. Bytes that are being received now are
  /// still reported. Can be called from any thread. Calling it again has no effect.
  public func pauseReading() { setPaused(true) }

  /// Receives again.
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

  /// Receives once, for whom it is.
  ///
  /// Under the lock; the loop's thread.
  func receive() {
    switch state.taker {
    case .nobody: break
    case .handler: receiveForHandler()
    case .request:
      state.toldReadable()
      tell(.readable)
      // A handler that has read costs no system call.
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

  /// Receives into a buffer, and notes the end or an error; nil: nothing to be notified of.
  ///
  /// Under the lock.
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

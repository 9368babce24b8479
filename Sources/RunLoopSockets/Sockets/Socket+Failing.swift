// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// A failure of one direction ends only that direction: bytes that the kernel has received are delivered before the
// error.
//
// Each of these requires the lock.
extension Socket {
  /// Ends the writing side with an error: queued bytes are dropped, and writers get the error.
  ///
  /// The socket is closed with the error when the bytes that were received have been delivered.
  func failOutput(_ error: SocketError) {
    guard state.failOutput(error) else { return }
    queue.removeAll()
    tls?.dropOutput()
    // If the connection still exists, the peer sees the end of the stream and ends its side too.
    try? descriptor?.shutDown(Int32(SHUT_WR))
    if state.isOpen, state.hasEnded { return close(error) }
    closeIfNothingIsLeft()
    updateInterest()
    postFailure()
  }

  /// Handles a failed `shutdown`, whose own error is less specific than the socket's pending error.
  func failShutDown(_ error: SystemError) {
    guard error.number == ENOTCONN, let descriptor else { return failOutput(failure(error)) }
    do throws(SystemError) {
      try descriptor.takeError(of: .streamRead)
      failOutput(failure(error))
    } catch {
      failOutput(failure(error))
    }
  }

  /// Returns the error to close the socket with if receiving fails or finds an end that is not the peer's.
  ///
  /// The system reports a reset only to the first call that encounters it; later calls see a connection that has ended.
  func firstError(_ error: SocketError) -> SocketError { state.outputFailure ?? error }

  /// Handles the end of the input, and returns 0 if the handler must be notified of it, and `nil` otherwise.
  func inputEnded() -> Int? {
    guard let failure = state.outputFailure else {
      if state.ended() { close(nil) }
      return 0
    }
    defer { close(failure) }
    // After a reset, the end of the stream does not come from the peer.
    guard failure.isBehindEnd else { return nil }
    _ = state.ended()
    return 0
  }

  /// Closes the socket if its connection is lost, nothing is left to read, and neither a task nor the handler is
  /// reading.
  func closeIfNothingIsLeft() {
    guard state.isOpen, !state.hasEnded, !state.receives, let descriptor else { return }
    if let tls { return closeIfNothingIsLeft(tls, descriptor) }
    do throws(SystemError) {
      guard try descriptor.hasBytes() == false, state.outputFailure != nil else { return }
      // A task that reads later gets the peer's end.
      _ = inputEnded()
    } catch {
      // The error was taken from the socket, which will not report it again.
      close(firstError(failure(error)))
    }
  }

  private func closeIfNothingIsLeft(_ tls: TLSSession, _ descriptor: OwnedDescriptor) {
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    let nowhere = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    do throws(SystemError) {
      // Process TLS records that carry no data for the reader, such as session tickets.
      while tls.plain.count == 0, tls.state.reads {
        guard let count = try receiveBytes(buffer, from: descriptor) else { return }
        feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]), nowhere, tls)
        if state.hasOutputFailed { tls.dropOutput() }
      }
    } catch {
      guard tls.plain.count == 0 else { return }
      return close(firstError(failure(error)))
    }
    guard tls.plain.count == 0 else { return }
    if tls.state.hasFailed { return closeIfFailed() }
    guard let failure = state.outputFailure else { return }
    if tls.state.hasEnded { _ = state.ended() }
    close(failure)
  }

  /// Notifies tasks and handlers waiting to write that the output has failed; must be called on the loop's thread.
  func tellFailure() {
    guard state.owesWriter, let failure = state.outputFailure else { return }
    if let waiting = writer.take() {
      lock.unlock()
      waiting.resume(throwing: failure)
      lock.lock()
    }
    if state.takeFailure() { tell(.writable) }
  }

  /// Asks a loop to notify the writers, unless a thread is already responding to an event.
  func postFailure() {
    guard responder == 0, state.owesWriter, state.owesRoom || writer.isTaken else { return }
    _ = post { [self] in ready([]) }
  }
}

extension SocketError {
  /// Whether an end of the stream received after this send error comes from the peer, and not from a connection that
  /// the system has aborted.
  fileprivate var isBehindEnd: Bool {
    guard case .system(let error, _) = self else { return true }
    return !error.endsConnection
  }
}

extension SystemError {
  /// Whether this error means that the system has aborted both directions; `EPIPE` means that the peer ended before a
  /// reset.
  var endsConnection: Bool {
    switch number {
    case ECONNRESET, ECONNABORTED, ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN: true
    default: false
    }
  }
}

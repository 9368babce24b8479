// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// A failure of one direction ends that direction only: what the kernel has received is delivered before the error.
//
// Under the lock.
extension Socket {
  /// Ends the writing side by an error: what waits to be sent is dropped, and writers get the error.
  ///
  /// The socket is closed with the error when what was received has been delivered.
  func failOutput(_ error: SocketError) {
    guard state.failOutput(error) else { return }
    queue.removeAll()
    tls?.dropOutput()
    // The peer of a connection that is not lost sees the end, and ends it too.
    try? descriptor?.shutDown(Int32(SHUT_WR))
    if state.isOpen, state.hasEnded { return close(error) }
    closeIfNothingIsLeft()
    updateInterest()
    postFailure()
  }

  /// The same after a shutdown that has failed, which knows less than the socket does.
  func failShutDown(_ error: SystemError) {
    guard error.number == ENOTCONN, let descriptor else { return failOutput(failure(error)) }
    do throws(SystemError) {
      try descriptor.takeError(of: .streamRead)
      failOutput(failure(error))
    } catch {
      failOutput(failure(error))
    }
  }

  /// What the socket is closed with when receiving has failed or has found an end that is none.
  ///
  /// A reset is reported once, by whichever call comes first; the others find a connection that has ended.
  func firstError(_ error: SocketError) -> SocketError { state.outputFailure ?? error }

  /// Called at the end of the input; returns zero if the handler must be notified of it, or else nil.
  func inputEnded() -> Int? {
    guard let failure = state.outputFailure else {
      if state.ended() { close(nil) }
      return 0
    }
    defer { close(failure) }
    // After a reset, no end was reported by the peer.
    guard failure.isBehindEnd else { return nil }
    _ = state.ended()
    return 0
  }

  /// Closes a socket that no task or handler reads now, if its connection is lost and there is nothing to read.
  func closeIfNothingIsLeft() {
    guard state.isOpen, !state.hasEnded, !state.receives, let descriptor else { return }
    if let tls { return closeIfNothingIsLeft(tls, descriptor) }
    do throws(SystemError) {
      guard try descriptor.hasBytes() == false, let failure = state.outputFailure else { return }
      close(failure)
    } catch {
      // It was taken from the socket, which would not report it again.
      close(firstError(failure(error)))
    }
  }

  private func closeIfNothingIsLeft(_ tls: TLSSession, _ descriptor: OwnedDescriptor) {
    let buffer = ReceiveBuffers.single.take()
    defer { ReceiveBuffers.single.giveBack(buffer) }
    let nowhere = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    do throws(SystemError) {
      // What is not for the reader, such as tickets, is no reason to wait for one.
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
    if tls.state.hasFailed { closeIfFailed() } else if let failure = state.outputFailure { close(failure) }
  }

  /// Notifies tasks and handlers that wait to write that the output has failed.
  ///
  /// The loop's thread.
  func tellFailure() {
    guard state.owesWriter, let failure = state.outputFailure else { return }
    if let waiting = writer.take() {
      lock.unlock()
      waiting.resume(throwing: failure)
      lock.lock()
    }
    if state.takeFailure() { tell(.writable) }
  }

  /// Has a loop do that, unless one responds to something now.
  func postFailure() {
    guard responder == 0, state.owesWriter, state.owesRoom || writer.isTaken else { return }
    _ = post { [self] in ready([]) }
  }
}

extension SocketError {
  /// Whether the end that is received after this error of sending is the peer's, and not what is left of a connection
  /// that the system has given up.
  fileprivate var isBehindEnd: Bool {
    guard case .system(let error, _) = self else { return true }
    return !error.endsConnection
  }
}

extension SystemError {
  /// Whether the system has given the connection up with this error, in both directions.
  ///
  /// If the peer has ended before a reset, the error is `EPIPE`.
  var endsConnection: Bool {
    switch number {
    case ECONNRESET, ECONNABORTED, ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN: true
    default: false
    }
  }
}

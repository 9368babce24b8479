// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// What a loop has found, on its thread.
extension Socket {
  /// Responds to what the descriptor is ready for, or, for nothing, reports the end that has been noted.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    let thread = pthread_self()
    lock.lock()
    // Of several loops one responds at a time; a run nested in the handler does too.
    guard responder == 0 || responder == thread else { return lock.unlock() }
    let outer = responder
    responder = thread
    respond(events)
    if state.hasOutputFailed { tellFailure() }
    responder = outer
    guard state.isOver, case .closing(let error) = state.phase else { return lock.unlock() }
    let body = body
    var remains = finish()
    lock.unlock()
    remains?.release(error)
    // Whoever is notified of the end finds the descriptor closed.
    remains = nil
    noteCall(of: body)
    body?.handler(self, .closed(error))
  }

  /// Under the lock, which is not held during call-outs.
  private func respond(_ events: RunLoop.DescriptorSource.Events) {
    guard !events.isEmpty else { return }
    switch state.phase {
    case .open: transfer(events)
    case .connecting: finishConnecting()
    case .securing: shakeHands()
    case .closing, .closed: break
    }
    // With the last of them an error would go that is yet to be taken.
    if events.contains(.error), !state.isOver { descriptor?.dropNotes() }
  }

  private func transfer(_ events: RunLoop.DescriptorSource.Events) {
    let hasTrouble = !events.isDisjoint(with: [.error, .hangUp])
    if events.contains(.writable) || hasTrouble, hasUnsent { flush() }
    if events.contains(.readable) || hasTrouble, state.receives {
      receive()
    } else if hasTrouble, state.hasEnded, state.isOpen, !hasUnsent {
      // There is nothing to read, and the output has failed.
      failOrEnd(isHungUp: events.contains(.hangUp))
    } else if events.contains(.readable) || hasTrouble {
      // Found before it was paused, or in a run within the handler.
      if hasTrouble { closeIfNothingIsLeft() }
      updateInterest()
    }
    if tls != nil { attendToSession() }
  }

  private func finishConnecting() {
    guard let descriptor else { return }
    var lost: SocketError?
    do throws(SystemError) {
      try descriptor.takeError(of: .connect)
    } catch {
      guard (try? descriptor.hasBytes()) == true else { return close(failure(error)) }
      // The connection was made, and the peer has sent something and reset it before anybody looked.
      lost = failure(SystemError(call: SystemCall.streamRead.rawValue, number: error.number))
    }
    if descriptor.isConnectedToItself(errorAddress) { return close(failure(descriptor.rejectItself())) }
    if let tls {
      begin(tls)
      if let lost { failOutput(lost) }
      startTimer()?.invalidate()
      return shakeHands()
    }
    state.connected()
    if let lost { failOutput(lost) }
    startTimer()?.invalidate()
    tell(.connected)
    guard state.phase == .open else { return }
    if queue.count > 0 { flush() } else { endWritingIfDue() }
    updateInterest()
  }

  private func failOrEnd(isHungUp: Bool) {
    guard let descriptor else { return }
    do throws(SystemError) {
      try descriptor.takeError(of: .streamRead)
      // Only the kernel's notes of packets were there: the other direction continues.
      if isHungUp { close(nil) }
    } catch {
      close(failure(error))
    }
  }

  /// Calls the handler, without the lock.
  func tell(_ event: Event) {
    var body = body
    lock.unlock()
    noteCall(of: body)
    body?.handler(self, event)
    // One that was replaced meanwhile goes here.
    body = nil
    lock.lock()
  }

  /// Ends the socket and returns what is to be released without the lock; nil if that was done before.
  ///
  /// Under the lock.
  func finish() -> Remains? {
    guard state.finish() else { return nil }
    place?.leave()
    defer {
      descriptor = nil
      body = nil
      place = nil
      tls = nil
      queue.removeAll()
    }
    return Remains(
      timers: [registrations.replaceTimer(nil), registrations.replaceSecondTimer(nil)],
      source: registrations.removeAll(),
      descriptor: descriptor, body: body, reader: reader.take(), writer: writer.take(), tls: tls, place: place)
  }

  /// What a socket that is over had.
  struct Remains {
    let timers: [RegisteredTimer?]
    let source: RunLoop.DescriptorSource?
    let descriptor: OwnedDescriptor?
    let body: Body?
    let reader: CheckedContinuation<[UInt8]?, any Error>?
    let writer: RoomWaits?
    let tls: TLSSession?
    /// Goes with this, after the descriptor was given up.
    let place: ConnectionPlace?

    /// Leaves the loops, before the descriptor is closed, and notifies the tasks that wait.
    func release(_ error: SocketError?) {
      source?.invalidate()
      for timer in timers { timer?.invalidate() }
      if let error { reader?.resume(throwing: error) } else { reader?.resume(returning: nil) }
      writer?.resume(throwing: error ?? .closedForWriting)
    }
  }
}

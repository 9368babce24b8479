// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// What a loop has found, on its thread.
extension Socket {
  /// Responds to what the descriptor is ready for.
  ///
  /// Under the lock, which is not held during call-outs.
  func respond(to events: RunLoop.DescriptorSource.Events) {
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
    endReadingIfDue()
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
}

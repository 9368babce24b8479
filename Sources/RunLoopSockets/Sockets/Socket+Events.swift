// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

// Handling of the descriptor's events, on a loop's thread.
extension Socket {
  /// Responds to events of the descriptor; requires the lock, which is released during call-outs.
  func respond(to events: RunLoop.DescriptorSource.Events) {
    guard !events.isEmpty else { return }
    switch state.phase {
    case .open: transfer(events)
    case .connecting: finishConnecting()
    case .securing: shakeHands()
    case .closing, .closed: break
    }
    // Dropping the last notification also clears a pending error, which must be taken first.
    if events.contains(.error), !state.isOver { descriptor?.dropNotes() }
  }

  private func transfer(_ events: RunLoop.DescriptorSource.Events) {
    let hasTrouble = !events.isDisjoint(with: [.error, .hangUp])
    if events.contains(.writable) || hasTrouble, hasUnsent { flush() }
    guard !isAway else { return }
    if events.contains(.readable) || hasTrouble, state.receives {
      receive()
    } else if hasTrouble, state.hasEnded, state.isOpen, !hasUnsent {
      // There is nothing to read, and the output has failed.
      failOrEnd(isHungUp: events.contains(.hangUp))
    } else if events.contains(.readable) || hasTrouble {
      // These events occurred before reading was paused, or were handled by a nested run.
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
      // The connection was established, and the peer sent bytes and reset it before this pass.
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
    hasConnected()
  }

  /// Reports that the socket is connected, and does what has waited for that.
  func hasConnected() {
    startTimer()?.invalidate()
    tell(.connected)
    guard state.phase == .open else { return }
    endReadingIfDue()
    if queue.count > 0, !isAway { flush() } else { endWritingIfDue() }
    updateInterest()
  }

  private func failOrEnd(isHungUp: Bool) {
    guard let descriptor else { return }
    do throws(SystemError) {
      try descriptor.takeError(of: .streamRead)
      // The events were only the kernel's transmit notifications. The other direction continues.
      if isHungUp { close(nil) }
    } catch {
      close(failure(error))
    }
  }

  /// Calls the handler; requires the lock, which is released during the call.
  func tell(_ event: Event) {
    var body = body
    lock.unlock()
    noteCall(of: body)
    body?.handler(self, event)
    // Release a handler that was replaced in the meantime before taking the lock.
    body = nil
    lock.lock()
  }
}

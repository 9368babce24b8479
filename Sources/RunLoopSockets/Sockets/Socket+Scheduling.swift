// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopSystemEvents

extension Socket: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// A socket may be in several modes of several loops; its timeouts count as long as it is in one. It stays connected
  /// in no loop as long as a reference to it is kept.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is over, and the errors of adding a descriptor source.
  ///
  /// The corresponding Core Foundation functions are `CFSocketCreateRunLoopSource` and `CFRunLoopAddSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension Socket: RegisteredItem {
  var watched: (descriptor: Int32, events: RunLoop.DescriptorSource.Events?)? {
    descriptor.map { ($0.number, state.interest(isQueueEmpty: !hasUnsent)) }
  }

  func hasEntered() {
    if registrations.timer == nil { startTimer() }
    if case .closing = state.phase { postEnd() }
    postFailure()
    if tls != nil {
      // A loop that has ended looks for nothing.
      hasPostedSession = false
      postSession()
    }
  }

  /// Updates what the source waits for, if it is something else now.
  ///
  /// Under the lock.
  func updateInterest() {
    noteDirections()
    guard let source = registrations.source else { return }
    if tls != nil { postSession() }
    let events = state.interest(isQueueEmpty: !hasUnsent)
    guard source.isPaused ? events != nil : events != source.events else { return }
    do {
      try source.watch(for: events)
    } catch {
      // An invalid source is one of a socket that is being closed.
      if error != .invalidSource { close(.loop(error)) }
    }
  }

  /// Notes that the socket is over, for its handler to be notified on a loop.
  ///
  /// Under the lock.
  func close(_ error: SocketError?) {
    guard state.close(error) else { return }
    queue.removeAll()
    postEnd()
  }

  private func postEnd() {
    // Whoever responds to an event looks for the end when that is done.
    guard responder == 0 else { return }
    _ = registrations.perform { [self] in ready([]) }
  }
}

// What it is for those who ask what keeps a loop.
extension Socket: CarriedItem {
  package var keepAliveKind: KeepAliveKind { .descriptor }
  package var keepAliveCode: UInt64 {
    lock.ifOwned(else: 0) { body.map { codeAddress(of: $0) } ?? 0 }
  }
  package var keepAliveDetail: String {
    lock.ifOwned(else: "of the parent process") { "descriptor \(descriptor?.number ?? -1), a connection" }
  }
}

// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopSystemEvents

extension DatagramSocket: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is closed, and the errors of adding a descriptor source.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension DatagramSocket: RegisteredItem {
  var watched: (descriptor: Int32, events: RunLoop.DescriptorSource.Events?)? {
    descriptor.map { ($0.number, state.interest) }
  }

  func hasEntered() {
    if state.room == .byTime, registrations.secondTimer == nil { startRetrying() }
    if case .closing = state.phase { postEnd() }
  }

  /// Updates what the source waits for, if it is something else now.
  ///
  /// Under the lock.
  @inline(__always)
  func updateInterest() {
    if !kept.isEmpty { offerKept() }
    guard let source = registrations.source else { return }
    let events = state.interest
    guard source.isPaused ? events != nil : events != source.events else { return }
    do {
      try source.watch(for: events)
    } catch {
      if error != .invalidSource { close(.loop(error)) }
    }
  }

  /// Notes that the socket is over, for its handler to be notified on a loop.
  ///
  /// Under the lock.
  func close(_ error: DatagramError) {
    guard !state.isOver else { return }
    state.close(error)
    postEnd()
  }

  private func postEnd() {
    // Whoever responds to an event looks for the end when that is done.
    guard responder == 0 else { return }
    _ = registrations.perform { [self] in ready([]) }
  }

  /// Ends the socket and returns what is to be released without the lock; nil if that was done before.
  ///
  /// Under the lock.
  func finish() -> Remains? {
    guard state.finish() else { return nil }
    burst = DatagramBurst()
    kept = []
    defer {
      descriptor = nil
      body = nil
    }
    return Remains(
      file: file, timers: [registrations.replaceTimer(nil), registrations.replaceSecondTimer(nil)],
      source: registrations.removeAll(),
      descriptor: descriptor, body: body, reader: reader.take(), writer: writer.take())
  }

  /// What a socket that is closed had.
  struct Remains {
    let file: SocketFile?
    let timers: [RegisteredTimer?]
    let source: RunLoop.DescriptorSource?
    let descriptor: OwnedDescriptor?
    let body: Body?
    let reader: CheckedContinuation<Datagram?, any Error>?
    let writer: RoomWaits?

    /// Leaves the loops, before the descriptor is closed, and notifies the tasks that wait.
    func release(_ error: DatagramError?) {
      source?.invalidate()
      for timer in timers { timer?.invalidate() }
      file?.remove()
      if let error { reader?.resume(throwing: error) } else { reader?.resume(returning: nil) }
      writer?.resume(throwing: error ?? .invalid)
    }
  }
}

// Times.
extension DatagramSocket {
  /// Stops receiving for a while.
  ///
  /// Under the lock.
  func postpone() {
    state.isExhausted = true
    let timer = RegisteredTimer(deadline: registrations.instant(after: options.retryInterval)) { [weak self] timer in
      self?.receiveAgain(timer)
    }
    registrations.replaceTimer(timer)
    updateInterest()
  }

  func receiveAgain(_ timer: Timer) {
    lock.lock()
    guard registrations.timer?.contains(timer) == true else { return lock.unlock() }
    let over = registrations.replaceTimer(nil)
    state.isExhausted = false
    lock.unlock()
    over?.invalidate()
    // Before the next timer is asked for: what is kept goes now.
    ready([])
    lock.withLock { updateInterest() }
  }

  /// How often sending is tried where nobody reports that there is room.
  private static let roomInterval: Duration = .milliseconds(10)

  /// Under the lock.
  func startRetrying() {
    guard registrations.secondTimer == nil, !registrations.all.isEmpty else { return }
    let timer = RegisteredTimer(deadline: registrations.instant(after: Self.roomInterval)) { [weak self] timer in
      self?.mayHaveRoom(timer)
    }
    _ = registrations.replaceSecondTimer(timer)
  }

  private func mayHaveRoom(_ timer: Timer) {
    lock.lock()
    guard registrations.secondTimer?.contains(timer) == true else { return lock.unlock() }
    let over = registrations.replaceSecondTimer(nil)
    lock.unlock()
    over?.invalidate()
    ready(.writable)
  }
}

// What it is for those who ask what keeps a loop.
extension DatagramSocket: CarriedItem {
  package var keepAliveKind: KeepAliveKind { .descriptor }
  package var keepAliveCode: UInt64 {
    lock.ifOwned(else: 0) { body.map { codeAddress(of: $0) } ?? 0 }
  }
  package var keepAliveDetail: String {
    lock.ifOwned(else: "of the parent process") { "descriptor \(descriptor?.number ?? -1), datagrams" }
  }
}

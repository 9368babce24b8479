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

// Timeouts.
extension Socket {
  /// Counts the time of what the socket waits for now, if that has a timeout, and returns the timer that is over.
  ///
  /// Under the lock.
  @discardableResult
  func startTimer() -> RegisteredTimer? {
    if state.awaitsRoom, state.phase == .connecting { return startRetrying() }
    let limit: Duration?
    switch state.phase {
    case .connecting: limit = options.connectTimeout
    case .securing: limit = tls?.context.handshakeTimeout
    case .open: limit = options.idleTimeout
    case .closing, .closed: limit = nil
    }
    guard let limit, let loop = registrations.all.first?.loop else { return registrations.replaceTimer(nil) }
    lastActivity = loop.clockNow
    let timer = RegisteredTimer(deadline: loop.instant(after: limit), interval: limit) { [weak self] timer in
      self?.timeIsOver(timer, limit)
    }
    return registrations.replaceTimer(timer)
  }

  /// How often connecting is tried where there is no room for the connection yet.
  private static let retryInterval: Duration = .milliseconds(10)

  /// Under the lock.
  private func startRetrying() -> RegisteredTimer? {
    guard let loop = registrations.all.first?.loop else { return registrations.replaceTimer(nil) }
    lastActivity = loop.clockNow
    let timer = RegisteredTimer(deadline: loop.instant(after: Self.retryInterval), interval: Self.retryInterval) {
      [weak self] timer in self?.tryToConnect(timer)
    }
    return registrations.replaceTimer(timer)
  }

  /// On the thread of one of the loops.
  private func tryToConnect(_ timer: Timer) {
    lock.lock()
    guard registrations.timer?.contains(timer) == true, let address = awaitedAddress, let descriptor,
      let begun = lastActivity
    else { return lock.unlock() }
    var over: RegisteredTimer?
    do throws(SystemError) {
      if try descriptor.connect(address) {
        awaitedAddress = nil
        state.awaitsRoom = false
        over = startTimer()
        updateInterest()
      } else if let limit = options.connectTimeout, RunLoop.current.clockNow >= begun + Int64(saturating: limit) {
        close(.timedOut(after: limit, address: errorAddress))
      }
    } catch {
      close(failure(error))
    }
    lock.unlock()
    over?.invalidate()
    ready([])
  }

  /// On the thread of one of the loops.
  private func timeIsOver(_ timer: Timer, _ limit: Duration) {
    lock.lock()
    guard registrations.timer?.contains(timer) == true, let lastActivity else { return lock.unlock() }
    let due = lastActivity + Int64(saturating: limit)
    if due > RunLoop.current.clockNow {
      timer.deadline = due.instant
    } else {
      do throws(SystemError) {
        if state.phase == .open, state.receives, try descriptor?.hasBytes() != nil {
          // The loop was busy while something has arrived, which is received first.
          timer.deadline = RunLoop.current.instant(after: limit)
        } else {
          close(state.phase == .securing ? handshakeTimedOut(limit) : .timedOut(after: limit, address: errorAddress))
        }
      } catch {
        // The system reports it once.
        close(failure(error))
      }
    }
    lock.unlock()
    ready([])
  }

  /// Notes that something was received or sent.
  ///
  /// Under the lock.
  @inline(__always)
  func noteActivity() {
    // The time of a handshake goes on whatever comes.
    guard options.idleTimeout != nil, state.phase != .securing, let loop = registrations.all.first?.loop else { return }
    lastActivity = loop.clockNow
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

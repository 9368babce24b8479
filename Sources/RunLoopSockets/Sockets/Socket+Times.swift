// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

// MARK: - Timeouts
extension Socket {
  /// Starts the timer for the current phase, if that has a timeout, and returns the timer that it replaces; requires
  /// the lock.
  @discardableResult
  func startTimer() -> RegisteredTimer? {
    if state.awaitsRoom, state.phase == .connecting { return startRetrying() }
    let limit: Duration?
    switch state.phase {
    case .connecting: limit = options.connectTimeout
    case .securing: limit = tls?.context.handshakeTimeout
    case .open: limit = options.shortestIdleLimit
    case .closing, .closed: limit = nil
    }
    guard let limit, let loop = registrations.all.first?.loop else { return registrations.replaceTimer(nil) }
    (lastActivity, idle) = (loop.clockNow, IdleTimes(now: loop.clockNow))
    noteDirections()
    let timer = RegisteredTimer(deadline: loop.instant(after: limit), interval: limit) { [weak self] timer in
      self?.timeIsOver(timer, limit)
    }
    return registrations.replaceTimer(timer)
  }

  /// How often to retry connecting while the listener's queue is full.
  private static let retryInterval: Duration = .milliseconds(10)

  /// Requires the lock.
  private func startRetrying() -> RegisteredTimer? {
    guard let loop = registrations.all.first?.loop else { return registrations.replaceTimer(nil) }
    lastActivity = loop.clockNow
    let timer = RegisteredTimer(deadline: loop.instant(after: Self.retryInterval), interval: Self.retryInterval) {
      [weak self] timer in self?.tryToConnect(timer)
    }
    return registrations.replaceTimer(timer)
  }

  /// Called on the thread of one of the socket's loops.
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

  /// Called on the thread of one of the socket's loops.
  private func timeIsOver(_ timer: Timer, _ limit: Duration) {
    lock.lock()
    guard registrations.timer?.contains(timer) == true, let lastActivity else { return lock.unlock() }
    let now = RunLoop.current.clockNow
    if state.phase == .open {
      lookForIdleness(timer, now)
    } else if lastActivity + Int64(saturating: limit) > now {
      timer.deadline = (lastActivity + Int64(saturating: limit)).instant
    } else {
      close(state.phase == .securing ? handshakeTimedOut(limit) : .timedOut(after: limit, address: errorAddress))
    }
    lock.unlock()
    ready([])
  }
}

// MARK: - Idle timeouts
extension Socket {
  /// Ends the socket if it has been idle for too long, and otherwise sets the timer to the next possible time; requires
  /// the lock.
  private func lookForIdleness(_ timer: Timer, _ now: Tick) {
    noteDirections()
    var next = Tick.never
    for (side, limit) in options.idleLimits {
      guard let last = idle.last(side), last + Int64(saturating: limit) <= now else {
        // A wait that starts later than now ends later than this.
        next = min(next, (idle.last(side) ?? now) + Int64(saturating: limit))
        continue
      }
      guard !isOver(side, limit) else { return }
      next = min(next, now + Int64(saturating: limit))
    }
    timer.deadline = next.instant
  }

  /// Ends the socket because of one of its limits, unless bytes have arrived while the loop was busy, and returns
  /// whether it is over.
  private func isOver(_ side: Side, _ limit: Duration) -> Bool {
    let error: SocketError =
      side == .both ? .timedOut(after: limit, address: errorAddress) : .idle(side, after: limit, address: errorAddress)
    do throws(SystemError) {
      switch side {
      case .read, .both: if state.receives, try descriptor?.hasBytes() != nil { return false }
      case .write:
        // The reader gets the same time again for what has arrived. A peer that keeps sending but accepts nothing
        // is ended then.
        let isFirst = !state.hasOutputFailed
        failOutput(error)
        idle.writing = idleNow
        guard state.isOpen else { return true }
        let isDecrypted = (tls?.plain.count ?? 0) > 0
        let isReceived = try descriptor?.hasBytes() != nil
        let hasBytes = isDecrypted || isReceived
        if hasBytes, isFirst || !state.receives { return false }
      }
      close(error)
    } catch {
      // The system reports the error only once.
      close(firstError(failure(error)))
    }
    return true
  }

  /// Records that bytes were received; requires the lock.
  @inline(__always)
  func noteReceived() {
    guard options.hasIdleLimit, let now = idleNow else { return }
    idle.either = now
    if idle.reading != nil { idle.reading = now }
  }

  /// Records that the system accepted bytes to send; requires the lock.
  @inline(__always)
  func noteSent(_ count: Int) {
    guard options.hasIdleLimit, count > 0, let now = idleNow else { return }
    idle.either = now
    if idle.writing != nil { idle.writing = now }
  }

  // Activity does not extend the timeout of a handshake.
  private var idleNow: Tick? { state.phase == .securing ? nil : registrations.all.first?.loop.clockNow }

  /// Records which directions are waiting; the others do not time out.
  @inline(__always)
  func noteDirections() { if options.hasIdleLimit { noteDirectionsNow() } }

  private func noteDirectionsNow() {
    guard let now = idleNow else { return }
    var isWriting = hasUnsent
    // The output has timed out, and the reader has this time to receive what has arrived.
    if case .idle = state.outputFailure { isWriting = true }
    idle.reading = state.receives ? idle.reading ?? now : nil
    idle.writing = isWriting ? idle.writing ?? now : nil
  }
}

/// The times of the last activity in each direction, or `nil` for a direction that is not waiting.
struct IdleTimes {
  var either: Tick?
  var reading: Tick?
  var writing: Tick?

  init() {}

  /// The state at the start of a connection.
  init(now: Tick) { either = now }

  func last(_ side: Socket.Side) -> Tick? {
    switch side {
    case .read: reading
    case .write: writing
    case .both: either
    }
  }
}

extension Socket.Options {
  @inline(__always)
  fileprivate var hasIdleLimit: Bool { idleTimeout != nil || readTimeout != nil || writeTimeout != nil }

  fileprivate var idleLimits: [(side: Socket.Side, limit: Duration)] {
    [(.both, idleTimeout), (.read, readTimeout), (.write, writeTimeout)].compactMap { side, limit in
      limit.map { (side, $0) }
    }
  }

  fileprivate var shortestIdleLimit: Duration? { idleLimits.map(\.limit).min() }
}

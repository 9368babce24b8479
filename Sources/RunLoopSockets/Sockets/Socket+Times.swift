// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

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

// How long nothing may happen.
extension Socket {
  /// Ends what has been idle for too long, or looks again when something may be.
  ///
  /// Under the lock.
  private func lookForIdleness(_ timer: Timer, _ now: Tick) {
    noteDirections()
    var next = Tick.never
    for (side, limit) in options.idleLimits {
      guard let last = idle.last(side), last + Int64(saturating: limit) <= now else {
        // Whatever begins to be waited for from now on is due later than this.
        next = min(next, (idle.last(side) ?? now) + Int64(saturating: limit))
        continue
      }
      guard !isOver(side, limit) else { return }
      next = min(next, now + Int64(saturating: limit))
    }
    timer.deadline = next.instant
  }

  /// Ends the socket for one of its limits, and returns whether it is over.
  ///
  /// If the loop was busy while something has arrived, that is received first.
  private func isOver(_ side: Side, _ limit: Duration) -> Bool {
    let error: SocketError =
      side == .both ? .timedOut(after: limit, address: errorAddress) : .idle(side, after: limit, address: errorAddress)
    do throws(SystemError) {
      switch side {
      case .read, .both: if state.receives, try descriptor?.hasBytes() != nil { return false }
      case .write:
        // The reader gets what is there, for as long again; whoever keeps sending and takes nothing is ended then.
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
      // The system reports it once.
      close(firstError(failure(error)))
    }
    return true
  }

  /// Notes that something was received.
  ///
  /// Under the lock.
  @inline(__always)
  func noteReceived() {
    guard options.hasIdleLimit, let now = idleNow else { return }
    idle.either = now
    if idle.reading != nil { idle.reading = now }
  }

  /// Notes that the system has taken bytes to be sent.
  ///
  /// Under the lock.
  @inline(__always)
  func noteSent(_ count: Int) {
    guard options.hasIdleLimit, count > 0, let now = idleNow else { return }
    idle.either = now
    if idle.writing != nil { idle.writing = now }
  }

  // The time of a handshake goes on whatever comes.
  private var idleNow: Tick? { state.phase == .securing ? nil : registrations.all.first?.loop.clockNow }

  /// Notes which directions something is waited for in: the time of others does not count.
  @inline(__always)
  func noteDirections() { if options.hasIdleLimit { noteDirectionsNow() } }

  private func noteDirectionsNow() {
    guard let now = idleNow else { return }
    var isWriting = hasUnsent
    // The time for which the reader still gets what is there.
    if case .idle = state.outputFailure { isWriting = true }
    idle.reading = state.receives ? idle.reading ?? now : nil
    idle.writing = isWriting ? idle.writing ?? now : nil
  }
}

/// Since when nothing has happened in a direction; nil while nothing is waited for there.
struct IdleTimes {
  var either: Tick?
  var reading: Tick?
  var writing: Tick?

  init() {}

  /// From the beginning of a connection on.
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

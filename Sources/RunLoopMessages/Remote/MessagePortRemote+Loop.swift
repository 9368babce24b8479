// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore
import RunLoopSystemEvents

extension MessagePort.Remote: MessagePortItem {
  package var keepAliveDetail: String { "sends to \(name)" }

  var watched: MessagePort.Descriptor { socket }

  func serve() { readWhatIsThere(isCallOut: true) }

  func withRegistrations<Result: Sendable>(_ body: (inout MessagePortRegistrations) -> Result) -> Result? {
    lock.ifOwned(else: nil) { state.end == nil ? body(&state.registrations) : nil }
  }
}

extension MessagePort.Remote: RunLoopItem {
  /// Adds the port to a mode of a loop, removes it, or returns whether it is in the mode.
  ///
  /// A loop that the port is in notices the end of its peer and reports undelivered messages.
  ///
  /// - Throws: ``MessagePortError/invalid``, ``MessagePortError/runLoop(_:)``.
  ///
  /// The corresponding Core Foundation function is `CFMessagePortCreateRunLoopSource`.
  public func respond(to request: RunLoop.ItemRequest) throws(MessagePortError) -> Bool { try carryOut(request) }
}

// MARK: - Callers whose loop runs while they wait
extension MessagePort.Remote {
  func send(
    _ content: inout MessageContent, _ waiter: ReplyWaiter, _ sendTimeout: Duration?, _ receiveTimeout: Duration?,
    in mode: RunLoop.Mode
  ) throws(MessagePortError) -> MessagePort.Reply? {
    let loop = RunLoop.current
    // Signaled when the outcome is available, which ends a pass.
    let news = RunLoop.Source {}
    // If the loop has ended, the next wait fails with an error.
    _ = loop.offer(news, forMode: mode)
    defer { news.invalidate() }
    waiter.wake = { [weak news] _ in
      news?.signal()
      loop.wakeUp()
    }
    let sendDeadline = sendTimeout.map { loop.clockNow + Int64(saturating: $0) } ?? .never
    while case .noRoom = try attempt(&content, waiter) {
      guard try turn(loop, mode, [.readable, .writable], until: sendDeadline) else { throw .sendTimedOut }
    }
    let deadline = receiveTimeout.map { loop.clockNow + Int64(saturating: $0) } ?? .never
    do throws(MessagePortError) {
      while true {
        if let outcome = lock.withLock({ waiter.outcome }) { return try outcome.get() }
        guard try turn(loop, mode, .readable, until: deadline) else { throw .receiveTimedOut }
      }
    } catch {
      _ = lock.withLock { state.pending.remove(waiter.token) }
      // The outcome may have arrived when the time limit passed.
      if let outcome = lock.withLock({ waiter.outcome }) { return try outcome.get() }
      throw error
    }
  }

  /// Runs the loop until something has happened, or returns false if the deadline has passed.
  private func turn(
    _ loop: RunLoop, _ mode: RunLoop.Mode, _ events: RunLoop.DescriptorSource.Events, until deadline: Tick
  ) throws(MessagePortError) -> Bool {
    let now = loop.clockNow
    guard now < deadline else { return false }
    let source = RunLoop.DescriptorSource(descriptor: socket.number, events: events) { _, _ in
      self.readWhatIsThere(isCallOut: true)
    }
    defer { source.invalidate() }
    do { try loop.add(source, forMode: mode) } catch { throw .runLoop(error) }
    let limit = deadline == .never ? Double.infinity : Double((deadline + -now.nanoseconds).nanoseconds) / 1e9
    switch loop.run(mode: mode, for: limit, returnAfterSourceHandled: true) {
    case .stopped, .finished: throw .stopped
    case .timedOut, .handledSource: return true
    }
  }
}

// MARK: - Watching by the service thread
extension MessagePort.Remote {
  /// Ensures that the end of the peer is noticed even if no thread reads.
  func watchForEnd() throws(MessagePortError) { try watch(\.isWatchedForEnd, .hangUp) }

  /// Ensures that replies are read even if no thread is waiting.
  func watchForReplies() throws(MessagePortError) { try watch(\.isWatchedForReplies, .readable) }

  private func watch(
    _ mark: ReferenceWritableKeyPath<MessagePort.Remote, Bool>, _ events: RunLoop.DescriptorSource.Events
  ) throws(MessagePortError) {
    // In a forked child, the port is invalid, and no service thread must be started for it.
    guard !lock.isParents else { return }
    let loop = ServiceThread.loop
    let source = RunLoop.DescriptorSource(descriptor: socket.number, events: events) { [weak self] _, _ in
      self?.readWhatIsThere(isCallOut: true)
    }
    let isNeeded = lock.withLock {
      guard state.end == nil, !self[keyPath: mark] else { return false }
      self[keyPath: mark] = true
      state.registrations.insert(source, in: loop, .default)
      return true
    }
    guard isNeeded else { return }
    do {
      try loop.add(source, forMode: .default)
    } catch {
      guard
        lock.withLock({
          self[keyPath: mark] = false
          return state.end == nil
        })
      else { return }
      throw .runLoop(error)
    }
  }
}

extension MessagePort.Remote: CustomDebugStringConvertible {
  /// The port's state, in the format of Core Foundation's descriptions.
  public var debugDescription: String {
    lock.ifOwned(else: "<MessagePort.Remote>{name = \(name), valid = No}") {
      "<MessagePort.Remote \(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()))>{name = \(name), "
        + "valid = \(state.end == nil ? "Yes" : "No"), peer = \(peer.process), pending = \(state.pending.count), "
        + "unconfirmed = \(state.unconfirmed.count)}"
    }
  }
}

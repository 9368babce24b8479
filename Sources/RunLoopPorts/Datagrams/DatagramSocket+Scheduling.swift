// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

extension RunLoop {
  /// Adds a datagram socket to a mode, or, for `RunLoop.Mode.common`, to every common mode there is and will be.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is closed, and what adding a descriptor source throws.
  public func add(_ socket: DatagramSocket, forMode mode: Mode) throws(RunLoopError) { try socket.join(self, mode) }

  /// Removes a datagram socket from a mode, or, for `RunLoop.Mode.common`, from every common mode.
  ///
  /// Can be called from any thread.
  public func remove(_ socket: DatagramSocket, forMode mode: Mode) { socket.part(self, mode) }

  /// Whether a datagram socket is in a mode, or, for `RunLoop.Mode.common`, among the common items.
  ///
  /// Can be called from any thread.
  public func contains(_ socket: DatagramSocket, forMode mode: Mode) -> Bool { socket.isIn(self, mode) }
}

extension DatagramSocket {
  /// Adds the socket to a mode of a loop, in the words of streams.
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws(RunLoopError) { try join(loop, mode) }

  /// Removes the socket from a mode of a loop.
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { part(loop, mode) }

  func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    guard !lock.isParents else { throw .invalidSource }
    lock.lock()
    guard let descriptor, state.phase != .closed else {
      lock.unlock()
      throw .invalidSource
    }
    let source = places.source ?? makeSource(descriptor)
    do throws(RunLoopError) {
      try places.enter(loop, mode, source)
    } catch {
      lock.unlock()
      throw withExtendedLifetime(source) { error }
    }
    if state.room == .byTime, places.secondTimer == nil { startRetrying() }
    if case .closing = state.phase { postEnd() }
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  private func makeSource(_ descriptor: OwnedDescriptor) -> RunLoop.DescriptorSource {
    let presence = Presence(self)
    let events = state.interest
    let source = RunLoop.DescriptorSource(descriptor: descriptor.number, events: events ?? [], carrying: presence) {
      _, events in
      presence.item.ready(events)
    }
    if events == nil { source.pause() }
    return source
  }

  func part(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard !lock.isParents else { return }
    lock.lock()
    let source = places.leave(loop, mode)
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    guard !lock.isParents, let source = lock.withLock({ places.source }) else { return false }
    return loop.contains(source, forMode: mode)
  }

  /// Tells the source what is waited for, if it is something else now.
  ///
  /// Under the lock.
  @inline(__always)
  func updateInterest() {
    guard let source = places.source else { return }
    let events = state.interest
    guard source.isPaused ? events != nil : events != source.events else { return }
    do {
      try source.watch(for: events)
    } catch {
      if error != .invalidSource { close(.loop(error)) }
    }
  }

  /// Notes that the socket is over, for its handler to be told on a loop.
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
    _ = places.perform { [self] in ready([]) }
  }

  /// Ends the socket and gives what is to be released without the lock; nil if that was done before.
  ///
  /// Under the lock.
  func finish() -> Remains? {
    guard state.finish() else { return nil }
    defer {
      descriptor = nil
      body = nil
      reader = nil
      writer = nil
    }
    return Remains(
      file: file, timers: [places.replaceTimer(nil), places.replaceSecondTimer(nil)], source: places.removeAll(),
      descriptor: descriptor, body: body, reader: reader, writer: writer)
  }

  /// What a socket that is closed had.
  struct Remains {
    let file: SocketFile?
    let timers: [PlacedTimer?]
    let source: RunLoop.DescriptorSource?
    let descriptor: OwnedDescriptor?
    let body: Body?
    let reader: CheckedContinuation<Datagram?, any Error>?
    let writer: CheckedContinuation<Void, any Error>?

    /// Leaves the loops, before the descriptor is closed, and tells the tasks that wait.
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
    let timer = PlacedTimer(deadline: places.instant(after: options.retryInterval)) { [weak self] timer in
      self?.receiveAgain(timer)
    }
    places.replaceTimer(timer)
    updateInterest()
  }

  private func receiveAgain(_ timer: Timer) {
    lock.lock()
    guard places.timer?.contains(timer) == true else { return lock.unlock() }
    let over = places.replaceTimer(nil)
    state.isExhausted = false
    updateInterest()
    lock.unlock()
    over?.invalidate()
  }

  /// How often sending is tried where nobody reports that there is room.
  private static let roomInterval: Duration = .milliseconds(10)

  /// Under the lock.
  func startRetrying() {
    guard places.secondTimer == nil, !places.all.isEmpty else { return }
    let timer = PlacedTimer(deadline: places.instant(after: Self.roomInterval)) { [weak self] timer in
      self?.mayHaveRoom(timer)
    }
    _ = places.replaceSecondTimer(timer)
  }

  private func mayHaveRoom(_ timer: Timer) {
    lock.lock()
    guard places.secondTimer?.contains(timer) == true else { return lock.unlock() }
    let over = places.replaceSecondTimer(nil)
    lock.unlock()
    over?.invalidate()
    ready(.writable)
  }
}

// What it is for those who ask what keeps a loop.
extension DatagramSocket: CarriedItem {
  package var keepAliveKind: KeepAliveKind { .descriptor }
  package var keepAliveCode: UInt64 {
    lock.isParents ? 0 : lock.withLock { body.map { codeAddress(of: $0) } ?? 0 }
  }
  package var keepAliveDetail: String {
    lock.isParents ? "of the parent process" : lock.withLock { "descriptor \(descriptor?.number ?? -1), datagrams" }
  }
}

public import RunLoopCore

extension RunLoop {
  /// Adds a socket to a mode, or, for `RunLoop.Mode.common`, to every common mode there is and will be.
  ///
  /// A socket may be in several modes of several loops; its timeouts count in the first loop. Any thread.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is over, and what adding a descriptor source throws.
  ///
  /// The corresponding Core Foundation functions are `CFSocketCreateRunLoopSource` and `CFRunLoopAddSource`.
  public func add(_ socket: Socket, forMode mode: Mode) throws(RunLoopError) { try socket.join(self, mode) }

  /// Removes a socket from a mode, or, for `RunLoop.Mode.common`, from every common mode.
  ///
  /// It stays connected if somebody holds it, and can be added again. Any thread.
  public func remove(_ socket: Socket, forMode mode: Mode) { socket.part(self, mode) }

  /// Whether a socket is in a mode, or, for `RunLoop.Mode.common`, among the common items.
  ///
  /// Any thread.
  public func contains(_ socket: Socket, forMode mode: Mode) -> Bool {
    guard let source = socket.lock.withLock({ socket.places.source }) else { return false }
    return contains(source, forMode: mode)
  }
}

extension Socket {
  /// Adds the socket to a mode of a loop.
  ///
  /// The same as `add(_:forMode:)` of the loop, in the words of streams.
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws(RunLoopError) { try join(loop, mode) }

  /// Removes the socket from a mode of a loop.
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { part(loop, mode) }

  func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    lock.lock()
    guard let descriptor, state.phase != .closed else {
      lock.unlock()
      throw .invalidSource
    }
    let source = places.sourceToAdd { [self] in
      let events = state.interest(isQueueEmpty: queue.count == 0)
      let presence = Presence(self)
      let source = RunLoop.DescriptorSource(descriptor: descriptor.number, events: events ?? []) { _, events in
        presence.item.ready(events)
      }
      if events == nil { source.pause() }
      return source
    }
    lock.unlock()
    try loop.add(source, forMode: mode)
    lock.lock()
    // An ended one is expelled by whoever has ended it.
    if state.phase != .closed { places.insert(loop, mode) }
    if timer == nil { makeTimer(loop) }
    if let timer { places.add(timer) }
    if case .closing = state.phase { postEnd() }
    lock.unlock()
  }

  func part(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    lock.lock()
    let source = places.source
    let timer = timer
    places.remove(loop, mode)
    lock.unlock()
    if let source { loop.remove(source, forMode: mode) }
    guard let timer else { return }
    loop.remove(timer, forMode: mode)
    // Its time goes on in the next loop, if the socket is in one.
    lock.lock()
    if timer === self.timer { places.add(timer) }
    lock.unlock()
  }

  /// Tells the source what is waited for, if it is something else now.
  ///
  /// Under the lock.
  func updateInterest() {
    guard let source = places.source else { return }
    let events = state.interest(isQueueEmpty: queue.count == 0)
    guard source.isPaused ? events != nil : events != source.events else { return }
    do {
      try source.watch(for: events)
    } catch {
      // An invalid source is one of a socket that is being closed.
      if error != .invalidSource { close(.loop(error)) }
    }
  }

  /// Notes that the socket is over, for its handler to be told on a loop.
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
    _ = places.perform { [self] in ready([]) }
  }
}

// Timeouts.
extension Socket {
  /// Makes the timer of what the socket waits for now, if that has a timeout.
  ///
  /// Under the lock.
  func makeTimer(_ loop: RunLoop) {
    let limit: Duration?
    switch state.phase {
    case .connecting: limit = options.connectTimeout
    case .open: limit = options.idleTimeout
    case .closing, .closed: limit = nil
    }
    guard let limit else { return }
    let now = loop.now
    lastActivity = now
    timer = Timer(deadline: now.advanced(by: limit), interval: limit) { [weak self] timer in
      self?.timeIsOver(timer, limit, loop)
    }
  }

  private func timeIsOver(_ timer: Timer, _ limit: Duration, _ loop: RunLoop) {
    lock.lock()
    guard timer === self.timer, let lastActivity else { return lock.unlock() }
    let due = lastActivity.advanced(by: limit)
    if due > loop.now {
      timer.deadline = due
    } else {
      close(.timedOut(after: limit))
    }
    lock.unlock()
    ready([])
  }

  /// Notes that something was received or sent.
  ///
  /// Under the lock.
  @inline(__always)
  func noteActivity() {
    if options.idleTimeout != nil, let loop = places.all.first?.loop { lastActivity = loop.now }
  }
}

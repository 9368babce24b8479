// SPDX-License-Identifier: Apache-2.0

import Glibc
public import RunLoopCore

extension RunLoop {
  /// Adds a listening socket to a mode, or, for `RunLoop.Mode.common`, to every common mode there is and will
  /// be.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is closed, and what adding a descriptor source throws.
  public func add(_ socket: ListeningSocket, forMode mode: Mode) throws(RunLoopError) { try socket.join(self, mode) }

  /// Removes a listening socket from a mode, or, for `RunLoop.Mode.common`, from every common mode.
  ///
  /// Can be called from any thread.
  public func remove(_ socket: ListeningSocket, forMode mode: Mode) { socket.part(self, mode) }

  /// Whether a listening socket is in a mode, or, for `RunLoop.Mode.common`, among the common items.
  ///
  /// Can be called from any thread.
  public func contains(_ socket: ListeningSocket, forMode mode: Mode) -> Bool { socket.isIn(self, mode) }
}

extension ListeningSocket {
  /// Adds the socket to a mode of a loop, in the words of streams.
  public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws(RunLoopError) { try join(loop, mode) }

  /// Removes the socket from a mode of a loop.
  public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { part(loop, mode) }

  func join(_ loop: RunLoop, _ mode: RunLoop.Mode) throws(RunLoopError) {
    guard !lock.isParents else { throw .invalidSource }
    lock.lock()
    guard let descriptor else {
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
    lock.unlock()
    withExtendedLifetime(source) {}
  }

  private func makeSource(_ descriptor: OwnedDescriptor) -> RunLoop.DescriptorSource {
    let presence = Presence(self)
    let source = RunLoop.DescriptorSource(descriptor: descriptor.number, events: .readable, carrying: presence) {
      _, _ in
      presence.item.accept()
    }
    if !accepts { source.pause() }
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

  private var accepts: Bool {
    !isPaused && places.timer == nil && (acceptor != nil || body != nil)
      && connectionCount < options.connectionLimit ?? .max
  }

  /// Under the lock.
  func updateInterest() {
    guard let source = places.source, source.isPaused == accepts else { return }
    do {
      try source.watch(for: accepts ? .readable : nil)
    } catch {
      guard case .cannotWatch(_, let error) = error else { return }
      postpone(error)
    }
  }

  /// Accepts what has come, some at a time, on the loop's thread.
  func accept() {
    for _ in 0..<Self.batch {
      lock.lock()
      guard accepts, let descriptor else { return lock.unlock() }
      let accepted: OwnedDescriptor
      do throws(SystemError) {
        accepted = try descriptor.accept()
      } catch {
        guard respond(to: error) else { return }
        continue
      }
      let connection = connection(with: accepted)
      let waiting = acceptor
      let body = body
      acceptor = nil
      if waiting != nil || options.connectionLimit != nil { updateInterest() }
      lock.unlock()
      if let waiting { waiting.resume(returning: connection) } else { body?.handler(self, .accepted(connection)) }
    }
  }

  // The optimizer of Swift 6.3 fails where this is inlined.
  @inline(never)
  private func connection(with accepted: OwnedDescriptor) -> Socket {
    // Only a socket that has been reset meanwhile refuses the option, and says so itself.
    if options.accepted.isWithoutDelay { try? accepted.setNoDelay(address.family) }
    var failure: SocketError?
    do throws(SocketError) {
      try accepted.set(options.accepted.socketOptions)
    } catch {
      failure = error
    }
    var place: ConnectionPlace?
    if options.connectionLimit != nil {
      connectionCount += 1
      place = ConnectionPlace(self)
    }
    let connection = Socket(accepted: accepted, options: options.accepted, place: place, error: failure)
    if let limit = options.requestDeadline { connection.setDeadline(after: limit, on: .current) }
    return connection
  }

  /// A connection that was accepted is closed.
  func connectionEnded() {
    guard !lock.isParents else { return }
    lock.lock()
    connectionCount -= 1
    updateInterest()
    lock.unlock()
  }

  /// Responds to an error of accepting, and unlocks; true if the next connection is to be looked for.
  private func respond(to error: SystemError) -> Bool {
    switch error.number {
    case EAGAIN:
      lock.unlock()
      return false
    case EMFILE, ENFILE, ENOBUFS, ENOMEM:
      postpone(error)
      let body = body
      lock.unlock()
      body?.handler(self, .exhausted(error))
      return false
    case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP, EFAULT:
      let body = body
      let remains = finish()
      lock.unlock()
      remains?.release(.system(error))
      body?.handler(self, .closed(.system(error)))
      return false
    default:
      // That connection is lost, as its client has seen; the others are not.
      lock.unlock()
      return true
    }
  }

  /// Stops accepting for a while.
  ///
  /// Under the lock.
  private func postpone(_ error: SystemError) {
    guard places.timer == nil else { return }
    let interval = options.retryInterval
    let deadline = places.all.first?.loop.instant(after: interval) ?? Tick.after(interval).instant
    let timer = PlacedTimer(deadline: deadline) { [weak self] timer in
      self?.tryAgain(timer)
    }
    places.replaceTimer(timer)
    updateInterest()
  }

  private func tryAgain(_ timer: Timer) {
    lock.lock()
    // Not for one that has been ended meanwhile.
    guard places.timer?.contains(timer) == true else { return lock.unlock() }
    let over = places.replaceTimer(nil)
    updateInterest()
    lock.unlock()
    over?.invalidate()
  }

  /// Ends the socket and gives what is to be released without the lock; nil if that was done before.
  ///
  /// Under the lock.
  func finish() -> Remains? {
    guard let descriptor else { return nil }
    defer {
      self.descriptor = nil
      body = nil
      acceptor = nil
    }
    return Remains(
      file: file, timer: places.replaceTimer(nil), source: places.removeAll(), descriptor: descriptor, body: body,
      acceptor: acceptor)
  }

  /// What a socket that is closed had.
  struct Remains {
    let file: SocketFile?
    let timer: PlacedTimer?
    let source: RunLoop.DescriptorSource?
    let descriptor: OwnedDescriptor
    let body: Body?
    let acceptor: CheckedContinuation<Socket?, any Error>?

    func release(_ error: SocketError?, keepsFile: Bool = false) {
      source?.invalidate()
      timer?.invalidate()
      if !keepsFile { file?.remove() }
      if let error { acceptor?.resume(throwing: error) } else { acceptor?.resume(returning: nil) }
    }
  }
}

// What it is for those who ask what keeps a loop.
extension ListeningSocket: CarriedItem {
  package var keepAliveKind: KeepAliveKind { .listener }
  package var keepAliveCode: UInt64 {
    lock.isParents ? 0 : lock.withLock { body.map { codeAddress(of: $0) } ?? 0 }
  }
  package var keepAliveDetail: String {
    "listens at \(address)"
  }
}

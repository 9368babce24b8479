// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
public import RunLoopCore
import RunLoopSystemEvents

extension ListeningSocket: RunLoopItem {
  /// Enters or leaves a mode of a loop, or says whether it is in the mode.
  ///
  /// - Throws: `RunLoopError.invalidSource` if the socket is closed, and the errors of adding a descriptor source.
  public func respond(to request: RunLoop.ItemRequest) throws(RunLoopError) -> Bool { try carryOut(request) }
}

extension ListeningSocket: RegisteredItem {
  var watched: (descriptor: Int32, events: RunLoop.DescriptorSource.Events?)? {
    descriptor.map { ($0.number, accepts ? .readable : nil) }
  }

  func hasEntered() {}

  private var accepts: Bool {
    !isPaused && registrations.timer == nil && (acceptor.isTaken || body != nil)
      && connectionCount < options.maximumConnectionCount ?? .max
  }

  /// Under the lock.
  func updateInterest() {
    guard let source = registrations.source, source.isPaused == accepts else { return }
    do {
      try source.watch(for: accepts ? .readable : nil)
    } catch {
      guard case .cannotWatch(_, let error) = error else { return }
      postpone(error)
    }
  }

  /// Accepts what has arrived, some at a time, on the loop's thread.
  func ready(_ events: RunLoop.DescriptorSource.Events) {
    for _ in 0..<Self.batch {
      lock.lock()
      guard accepts, let attempt = acceptOne() else { return lock.unlock() }
      let connection: Socket
      switch attempt {
      case .success(let accepted):
        connection = self.connection(with: accepted.descriptor, from: accepted.peer ?? address)
      case .failure(let error):
        guard respond(to: error) else { return }
        continue
      }
      let waiting = acceptor.take()
      let body = body
      if waiting != nil || options.maximumConnectionCount != nil { updateInterest() }
      lock.unlock()
      if let waiting {
        waiting.resume(returning: connection)
      } else {
        noteCall(of: body)
        body?.handler(self, .accepted(connection))
      }
    }
  }

  private typealias Accepted = (descriptor: OwnedDescriptor, peer: SocketAddress?)

  /// Accepts one connection; nil: the socket is closed.
  ///
  /// Under the lock.
  private func acceptOne() -> Result<Accepted, SystemError>? {
    guard let descriptor else { return nil }
    return Result { () throws(SystemError) in try descriptor.accept() }
  }

  // The optimizer of Swift 6.3 fails where this is inlined.
  @inline(never)
  private func connection(with accepted: OwnedDescriptor, from peer: SocketAddress) -> Socket {
    // Only a socket that has been reset meanwhile rejects the option, and says so itself.
    if options.accepted.noDelay { try? accepted.setNoDelay(address.family) }
    var failure: SocketError?
    do throws(SocketError) {
      try accepted.set(options.accepted.socketOptions)
    } catch {
      failure = error
    }
    let place = ConnectionPlace(self, accepted.number)
    connectionCount += 1
    openPlaces[accepted.number] = ObjectIdentifier(place)
    let connection = Socket(
      accepted: accepted, from: peer, options: options.accepted, place: place, error: failure)
    if let limit = options.requestDeadline { connection.setDeadline(after: limit, on: .current) }
    return connection
  }

  /// A connection that was accepted is closed.
  func connectionEnded() {
    guard lock.lockUnlessParents() else { return }
    connectionCount -= 1
    if options.maximumConnectionCount != nil { updateInterest() }
    let over = connectionCount == 0 ? drains : []
    if connectionCount == 0 { drains = [] }
    lock.unlock()
    for drain in over { drain.resume() }
  }

  /// The descriptor of a connection is about to be closed.
  func descriptorEnds(_ descriptor: Int32, _ place: ConnectionPlace) {
    guard lock.lockUnlessParents() else { return }
    defer { lock.unlock() }
    // Its number may be another's by now.
    if openPlaces[descriptor] == ObjectIdentifier(place) { openPlaces[descriptor] = nil }
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
      noteCall(of: body)
      body?.handler(self, .exhausted(error))
      return false
    case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP, EFAULT:
      let body = body
      var remains = finish()
      lock.unlock()
      remains?.release(.system(error, address: address))
      // Whoever is notified of the end finds the descriptor closed.
      remains = nil
      noteCall(of: body)
      body?.handler(self, .closed(.system(error, address: address)))
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
    guard registrations.timer == nil else { return }
    let interval = options.retryInterval
    let deadline = registrations.all.first?.loop.instant(after: interval) ?? Tick.after(interval).instant
    let timer = RegisteredTimer(deadline: deadline) { [weak self] timer in
      self?.tryAgain(timer)
    }
    registrations.replaceTimer(timer)
    updateInterest()
  }

  private func tryAgain(_ timer: Timer) {
    lock.lock()
    // Not for one that has been ended meanwhile.
    guard registrations.timer?.contains(timer) == true else { return lock.unlock() }
    let over = registrations.replaceTimer(nil)
    updateInterest()
    lock.unlock()
    over?.invalidate()
  }

  /// Ends the socket and returns what is to be released without the lock; nil if that was done before.
  ///
  /// Under the lock.
  func finish() -> Remains? {
    guard let descriptor else { return nil }
    defer {
      self.descriptor = nil
      body = nil
    }
    return Remains(
      file: file, timer: registrations.replaceTimer(nil), source: registrations.removeAll(), descriptor: descriptor,
      body: body,
      acceptor: acceptor.take())
  }

  /// What a socket that is closed had.
  struct Remains {
    let file: SocketFile?
    let timer: RegisteredTimer?
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
    lock.ifOwned(else: 0) { body.map { codeAddress(of: $0) } ?? 0 }
  }
  package var keepAliveDetail: String {
    "listens at \(address)"
  }
}

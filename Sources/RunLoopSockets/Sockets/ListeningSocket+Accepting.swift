// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension ListeningSocket {
  /// Whether a connection that arrives now would be accepted; requires the lock.
  var accepts: Bool {
    !isPaused && registrations.timer == nil && (acceptor.isTaken || body != nil)
      && connectionCount < options.maximumConnectionCount ?? .max
  }

  /// Updates the set of events that the source watches for, if it has changed; requires the lock.
  func updateInterest() { watch(for: interest) }

  func acceptSome() {
    for _ in 0..<Self.batch {
      lock.lock()
      guard accepts, registrations.isHere, let attempt = acceptOne() else { return lock.unlock() }
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

  /// Accepts one connection, or returns `nil` if the socket is closed; requires the lock.
  private func acceptOne() -> Result<Accepted, SystemError>? {
    guard let descriptor else { return nil }
    return Result { () throws(SystemError) in try descriptor.accept() }
  }

  // The optimizer of Swift 6.3 crashes if this is inlined.
  @inline(never)
  private func connection(with accepted: OwnedDescriptor, from peer: SocketAddress) -> Socket {
    // This fails only if the connection was reset in the meantime, which the socket then reports itself.
    try? accepted.setNoDelay(address.family)
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

  /// Called after an accepted connection was closed.
  func connectionEnded() {
    guard lock.lockUnlessParents() else { return }
    connectionCount -= 1
    if options.maximumConnectionCount != nil { updateInterest() }
    let over = connectionCount == 0 ? drains : []
    if connectionCount == 0 { drains = [] }
    lock.unlock()
    for drain in over { drain.resume() }
  }

  /// Called when the descriptor of a connection is about to be closed.
  func descriptorEnds(_ descriptor: Int32, _ place: ConnectionPlace) {
    guard lock.lockUnlessParents() else { return }
    defer { lock.unlock() }
    // The descriptor's number may have been reused by another connection.
    if openPlaces[descriptor] == ObjectIdentifier(place) { openPlaces[descriptor] = nil }
  }

  /// Responds to an error of `accept`, releases the lock, and returns whether to try to accept another connection.
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
      let reason = SocketError.system(error, address: address)
      endError = reason
      end(reason) {
        noteCall(of: body)
        body?.handler(self, .closed(reason))
      }
      return false
    default:
      // Only this connection is lost, and its client knows.
      lock.unlock()
      return true
    }
  }

  /// Pauses accepting for the retry interval; requires the lock.
  func postpone(_ error: SystemError) {
    guard registrations.timer == nil else { return }
    setTimer(\.timer, after: options.retryInterval) { $0.updateInterest() }
    updateInterest()
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Sets a socket option of the system.
  ///
  /// Can be called from any thread. The corresponding system call is `setsockopt`.
  ///
  /// - Throws: ``SocketError/option(_:_:)``, or ``SocketError/invalid``.
  public func set(_ option: SocketOption) throws(SocketError) {
    guard let descriptor = openDescriptor else { throw .invalid }
    defer { withExtendedLifetime(descriptor) {} }
    try option.apply(to: descriptor.number)
  }

  /// Returns the process at the other end of a Unix socket, as the kernel recorded it when the connection was
  /// established.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: ``SocketError/system(_:address:)`` for `getsockopt` with `EOPNOTSUPP` if this is a TCP socket, or
  ///   with `EMFILE` if no descriptor is left for the process; ``SocketError/invalid``.
  public func peerCredentials() throws(SocketError) -> PeerCredentials {
    guard let descriptor = openDescriptor else { throw .invalid }
    do throws(SystemError) {
      return try PeerCredentials(of: descriptor)
    } catch {
      throw failure(error)
    }
  }

  /// Sets a deadline, a time from now after which the socket is closed regardless of activity.
  ///
  /// The socket is then closed with ``SocketError/deadlinePassed(after:address:)``. This replaces an earlier
  /// deadline, such as ``ListeningSocket/Options/requestDeadline`` after a whole request has arrived; `nil` removes
  /// it. The deadline takes effect while the socket is in a loop and is measured on that loop's clock. Can be
  /// called from any thread.
  public func setDeadline(after time: Duration?) { setDeadline(after: time, on: nil) }

  /// Sets a deadline on the clock of `loop`, for a socket that is in no loop yet.
  func setDeadline(after time: Duration?, on loop: RunLoop?) {
    guard lock.lockUnlessParents() else { return }
    var next: RegisteredTimer?
    if let time, !state.isOver {
      let deadline = loop?.instant(after: time) ?? registrations.instant(after: time)
      next = RegisteredTimer(deadline: deadline) { [weak self] timer in self?.deadlinePassed(timer, time) }
    }
    let before = registrations.replaceTimer(next, \.secondTimer)
    lock.unlock()
    before?.invalidate()
  }

  /// Called on the thread of one of the socket's loops.
  private func deadlinePassed(_ timer: Timer, _ time: Duration) {
    lock.lock()
    guard registrations.secondTimer?.contains(timer) == true else { return lock.unlock() }
    close(.deadlinePassed(after: time, address: errorAddress))
    lock.unlock()
    ready([])
  }
}

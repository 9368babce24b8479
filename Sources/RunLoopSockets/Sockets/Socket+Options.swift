// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension Socket {
  /// Sets an option of the system.
  ///
  /// Can be called from any thread. The corresponding system call is `setsockopt`.
  ///
  /// - Throws: ``SocketError/option(_:_:)``, or ``SocketError/invalid``.
  public func set(_ option: SocketOption) throws(SocketError) {
    guard let descriptor = openDescriptor else { throw .invalid }
    defer { withExtendedLifetime(descriptor) {} }
    try option.apply(to: descriptor.number)
  }

  /// Returns the process at the other end of a Unix socket, as the kernel noted it when the connection was made.
  ///
  /// Can be called from any thread.
  ///
  /// - Throws: ``SocketError/system(_:address:)``: `getsockopt` with `EOPNOTSUPP` for a socket of TCP, with `EMFILE` if
  ///   the system has no descriptor left for the process; ``SocketError/invalid``.
  public func peerCredentials() throws(SocketError) -> PeerCredentials {
    guard let descriptor = openDescriptor else { throw .invalid }
    do throws(SystemError) {
      return try PeerCredentials(of: descriptor)
    } catch {
      throw failure(error)
    }
  }

  /// Closes the socket with ``SocketError/deadlinePassed(after:address:)`` after a time from now on, whatever is
  /// received or sent meanwhile; nil means never.
  ///
  /// It replaces the former deadline, such as ``ListeningSocket/Options/requestDeadline`` when a whole request has
  /// arrived. It takes effect while the socket is in a loop, on whose clock it is counted. Can be called from any
  /// thread.
  public func setDeadline(after time: Duration?) { setDeadline(after: time, on: nil) }

  /// The same on the clock of a loop, as the socket is in none yet.
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

  /// On the thread of one of the loops.
  private func deadlinePassed(_ timer: Timer, _ time: Duration) {
    lock.lock()
    guard registrations.secondTimer?.contains(timer) == true else { return lock.unlock() }
    close(.deadlinePassed(after: time, address: errorAddress))
    lock.unlock()
    ready([])
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

// Under the lock.
extension DatagramSocket {
  /// Updates what the source waits for, if it is something else now.
  @inline(__always)
  func updateInterest() {
    if !kept.isEmpty { offerKept() }
    watch(for: state.interest)
  }

  /// Notes that the socket is over, for its handler to be notified on a loop.
  func close(_ error: DatagramError) {
    guard !state.isOver else { return }
    state.close(error)
    postEnd()
  }

  /// Stops receiving for a while.
  func postpone() {
    state.isExhausted = true
    receiveAgain(after: options.retryInterval)
    updateInterest()
  }

  func receiveAgain(after time: Duration) {
    setTimer(\.timer, after: time) {
      $0.state.isExhausted = false
    } then: { socket in
      // Before the next timer is asked for: what is kept goes now.
      socket.ready([])
      socket.lock.withLock { socket.updateInterest() }
    }
  }

  /// How often sending is tried where nobody reports that there is room.
  private static let roomInterval: Duration = .milliseconds(10)

  func startRetrying() {
    guard registrations.secondTimer == nil, !registrations.all.isEmpty else { return }
    setTimer(\.secondTimer, after: Self.roomInterval, { _ in }, then: { $0.ready(.writable) })
  }
}

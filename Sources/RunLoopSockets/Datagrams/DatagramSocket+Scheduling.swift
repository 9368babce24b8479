// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

// Each of these requires the lock.
extension DatagramSocket {
  /// Updates the set of events that the source watches for, if it has changed.
  @inline(__always)
  func updateInterest() {
    if !kept.isEmpty { offerKept() }
    watch(for: state.interest)
  }

  /// Records that the socket is over, and asks a loop to notify the handler.
  func close(_ error: DatagramError) {
    guard !state.isOver else { return }
    state.close(error)
    postEnd()
  }

  func postpone() {
    state.isExhausted = true
    receiveAgain(after: options.retryInterval)
    updateInterest()
  }

  func receiveAgain(after time: Duration) {
    setTimer(\.timer, after: time) {
      $0.state.isExhausted = false
    } then: { socket in
      // Deliver kept datagrams before another timer is started for them.
      socket.ready([])
      socket.lock.withLock { socket.updateInterest() }
    }
  }

  /// How often to retry sending if the system does not report when there is room.
  private static let roomInterval: Duration = .milliseconds(10)

  func startRetrying() {
    guard registrations.secondTimer == nil, !registrations.all.isEmpty else { return }
    setTimer(\.secondTimer, after: Self.roomInterval, { _ in }, then: { $0.ready(.writable) })
  }
}

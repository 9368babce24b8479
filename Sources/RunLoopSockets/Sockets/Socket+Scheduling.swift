// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// Each of these requires the lock.
extension Socket {
  /// Updates the set of events that the source watches for, if it has changed.
  func updateInterest() {
    noteDirections()
    guard registrations.source != nil else { return }
    if tls != nil { postSession() }
    watch(for: interest)
  }

  /// Records that the socket is over, and asks a loop to notify the handler.
  func close(_ error: SocketError?) {
    guard state.close(error) else { return }
    queue.removeAll()
    postEnd()
  }
}

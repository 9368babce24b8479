// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

// Under the lock.
extension Socket {
  /// Updates what the source waits for, if it is something else now.
  func updateInterest() {
    noteDirections()
    guard registrations.source != nil else { return }
    if tls != nil { postSession() }
    watch(for: interest)
  }

  /// Notes that the socket is over, for its handler to be notified on a loop.
  func close(_ error: SocketError?) {
    guard state.close(error) else { return }
    queue.removeAll()
    postEnd()
  }
}

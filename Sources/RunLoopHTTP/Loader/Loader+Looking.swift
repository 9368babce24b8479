// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// MARK: - Checking for broken HTTP/2
//
// If a server sends data that is not HTTP/2, libcurl since 8.13 reports that only in its next call for the
// connection's socket, which it does not request. Without an idle timeout the requests would wait forever. A later
// call of its timer does not help. (According to their source, versions 8.1 to 8.12 never report it.)
extension Loader {
  /// The delay of a check after a call of libcurl, in nanoseconds.
  private static let lookDelay: Int64 = 50_000_000

  /// Records that the first response on a socket may be HTTP/2.
  func noteHTTP2IsPossible(_ descriptor: Int32) {
    watches[descriptor]?.mayBeHTTP2 = true
    hasHTTP2 = true
  }

  /// Schedules a check of the connections.
  func lookSoon() {
    guard lookDue == .never, hasHTTP2, !attempts.isEmpty else { return }
    lookDue = entered + Self.lookDelay
    if !isInside { arm() }
  }

  /// Calls libcurl once for each connection whose received data has all been read.
  ///
  /// Since such a call finds nothing to read, it processes all data that was read before. It reports the socket as
  /// readable, because Debian 12's version does not check the connection otherwise after the headers of a response. If
  /// data arrives in the meantime, the call may have read it, and another check follows. Another one also follows a
  /// call that delivered data, because Debian 12's version may hold back more. Otherwise the next check follows the
  /// next activity, so an idle connection costs nothing.
  ///
  /// A response whose end had been read would have ended before. One that ends in this call has lost its connection,
  /// for which Debian 12's version reports no error.
  ///
  /// - Complexity: O(*n*), where *n* is the number of sockets plus the requests on each.
  func look() {
    lookDue = .never
    var again = false
    for watch in watches.all where watch.isWanted && watch.mayBeHTTP2 && !watch.speaksHTTP1 {
      let descriptor = watch.source.descriptor
      // An earlier call may have closed the socket. If there is data to read, its event is still pending.
      guard isOpen, watches[descriptor] === watch, !FloodGuard.hasBytes(descriptor) else { continue }
      let before = FloodGuard.received(descriptor)
      inside { _ = clc_multi_act(multi, descriptor, Int32(clc_select_in)) }
      if takenInCall > 0 || watches[descriptor] === watch && FloodGuard.received(descriptor) != before {
        again = true
      } else {
        lookedAt = watch
      }
      settle()
      lookedAt = nil
    }
    if again { lookSoon() }
  }
}

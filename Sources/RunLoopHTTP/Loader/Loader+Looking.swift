// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// A server may send bytes that are not HTTP/2. Since 8.13, libcurl reports that only in its next call for the socket of
// the connection, which it does not request: without an idle timeout the requests would wait forever. A later call of
// its timer does not help. (By their source, versions from 8.1 to 8.12 never report it.)
extension Loader {
  /// How long after a call of the library.
  private static let lookDelay: Int64 = 50_000_000

  /// Notes that the first response on a socket may be HTTP/2.
  func noteHTTP2IsPossible(_ descriptor: Int32) {
    watches[descriptor]?.mayBeHTTP2 = true
    hasHTTP2 = true
  }

  /// Checks the connections soon.
  func lookSoon() {
    guard lookDue == .never, hasHTTP2, !attempts.isEmpty else { return }
    lookDue = entered + Self.lookDelay
    if !isInside { arm() }
  }

  /// Calls the library once for each connection of which everything that has arrived was read.
  ///
  /// Such a call finds nothing to read, and so handles everything that was read before. It says that the socket is
  /// readable: Debian 12's version does not check the connection otherwise after the headers of a response. If bytes
  /// arrive meanwhile, the call may have read them, and another follows, as it does after a call in which bytes were
  /// delivered: Debian 12's version may keep more that was read before. Otherwise the next call follows the next
  /// activity: an idle connection costs nothing.
  ///
  /// A response whose end had been read would have ended before. One that ends in this call has lost its connection;
  /// Debian 12's version reports no error for it.
  ///
  /// - Complexity: O(*n*) in the sockets, and in the requests of each.
  func look() {
    lookDue = .never
    var again = false
    for watch in watches.all where watch.isWanted && watch.mayBeHTTP2 && !watch.speaksHTTP1 {
      let descriptor = watch.source.descriptor
      // An earlier call may have closed it. If there is something to read, its event is still to come.
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

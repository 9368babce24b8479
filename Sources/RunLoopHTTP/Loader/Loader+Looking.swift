// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopCore

// What a server sends may be no HTTP/2 any more. From 8.13 on, libcurl notices when it is called for that connection's
// socket the next time, and asks for no such call: without an idle timeout the requests would wait forever. A later
// call of its timer does not help. (Versions from 8.1 to 8.12 do not notice at all, by their source.)
extension Loader {
  /// How long after a call of the library.
  private static let lookDelay: Int64 = 50_000_000

  /// The first answer on a socket may be one of HTTP/2.
  func noteHTTP2IsPossible(_ descriptor: Int32) {
    watches[descriptor]?.mayBeHTTP2 = true
    hasHTTP2 = true
  }

  /// Has the connections looked at soon.
  func lookSoon() {
    guard lookDue == .never, hasHTTP2, !attempts.isEmpty else { return }
    lookDue = entered + Self.lookDelay
    if !isInside { arm() }
  }

  /// Calls the library once for each connection of which everything that has arrived was read.
  ///
  /// Such a call finds nothing to read, so that it sees all that was read before. Debian 12's version has to be told
  /// that there is something: after the head of an answer it does not ask for the connection's state otherwise. Where
  /// bytes arrive meanwhile, the call may have read them, and another follows. Otherwise there is none until the
  /// library was called again: a connection on which nothing happens costs nothing.
  ///
  /// An answer whose end had been read would have ended before: one that ends now, without an error in Debian 12's
  /// version, has lost its connection.
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
      if watches[descriptor] === watch, FloodGuard.received(descriptor) != before {
        again = true
      } else if takenInCall == 0 {
        lookedAt = watch
      }
      settle()
      lookedAt = nil
    }
    if again { lookSoon() }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The thread-local state of a thread while another loop stands in for its loop.
package struct SetAsideLoop {
  fileprivate let slot: UnsafeMutableRawPointer?
  fileprivate let promise: UnsafeMutableRawPointer?
  fileprivate let main: UnsafeMutableRawPointer?
  fileprivate let round: UnsafeMutableRawPointer?
}

// A loop that stands in for the calling thread's own loop for a while, as a test's loop does. The thread's own loop
// comes back unchanged: it is not run meanwhile, and what other threads post to it waits.
extension RunLoop {
  /// Makes a loop the calling thread's ``current``, and ``main`` too if asked to, for code that runs on this thread.
  package static func setAsideCurrent(for loop: RunLoop, asMain: Bool) -> SetAsideLoop {
    let own = SetAsideLoop(
      slot: crl_thread_slot_get(), promise: crl_promise_slot_get(), main: crl_main_slot_get(),
      round: pthread_getspecific(endKey))
    attach(loop)
    if asMain { loop.standInForMain() }
    return own
  }

  /// Ends the loop that stands in for the calling thread's own, which comes back.
  package static func takeBack(_ own: SetAsideLoop) {
    detachCurrent()
    crl_thread_slot_set(own.slot)
    crl_promise_slot_set(own.promise)
    crl_main_slot_set(own.main)
    pthread_setspecific(endKey, own.round)
  }

  /// Makes the loop ``main`` for code that runs on the calling thread, whose loop it is, until it ends.
  package func standInForMain() { crl_main_slot_set(Unmanaged.passUnretained(self).toOpaque()) }

  /// Whether a loop stands in for the main one on the calling thread.
  package static var hasMainStandIn: Bool { crl_main_slot_get() != nil }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// The thread-local state of a thread whose loop is temporarily replaced by another.
package struct SetAsideLoop {
  fileprivate let slot: UnsafeMutableRawPointer?
  fileprivate let promise: UnsafeMutableRawPointer?
  fileprivate let main: UnsafeMutableRawPointer?
  fileprivate let round: UnsafeMutableRawPointer?
}

// Temporary replacement of the calling thread's loop, such as by a test's loop. The thread's own loop is restored
// unchanged: it is not run meanwhile, and posts from other threads wait.
extension RunLoop {
  /// Makes a loop the calling thread's ``current`` and, if `asMain` is true, ``main`` for code on this thread.
  package static func setAsideCurrent(for loop: RunLoop, asMain: Bool) -> SetAsideLoop {
    let own = SetAsideLoop(
      slot: crl_thread_slot_get(), promise: crl_promise_slot_get(), main: crl_main_slot_get(),
      round: pthread_getspecific(endKey))
    attach(loop)
    if asMain { loop.standInForMain() }
    return own
  }

  /// Ends the replacement loop and restores the calling thread's own loop.
  package static func takeBack(_ own: SetAsideLoop) {
    detachCurrent()
    crl_thread_slot_set(own.slot)
    crl_promise_slot_set(own.promise)
    crl_main_slot_set(own.main)
    pthread_setspecific(endKey, own.round)
  }

  /// Makes the loop, which must be the calling thread's, ``main`` for code on this thread until the loop ends.
  package func standInForMain() { crl_main_slot_set(Unmanaged.passUnretained(self).toOpaque()) }

  /// Whether the main loop is replaced by another loop for code on the calling thread.
  package static var hasMainStandIn: Bool { crl_main_slot_get() != nil }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// The process's main thread may exit long before the process does: libdispatch ends it in a program with an `async`
// main. Its loop then ends immediately, because the thread never reaches the second round of destructors.
extension RunLoop {
  /// Whether the process's main thread has exited, so that nothing can run on it (thread-safe).
  package static var mainThreadHasLeft: Bool { crl_main_thread_has_left() != 0 }

  /// Makes a newly created main loop end with its thread, which may have exited meanwhile.
  static func watchMainThread(_ made: RunLoop) {
    _ = crl_hook_exchange(CRL_HOOK_MAIN_LOOP_ENDS) { _ in RunLoop.endMain() }
    if mainThreadHasLeft { made.endWithThread() }
  }

  /// Ends the main thread's loop, as the thread's last step before it exits.
  private static func endMain() {
    detachCurrent()
    mainIfMade?.endWithThread()
    rejectCurrent()
  }

  /// Ends the loop; the main loop is ended only once, even if its thread exits while another thread creates the loop.
  func endWithThread() {
    guard self === RunLoop.mainIfMade else { return end() }
    if !RunLoop.mainEndBegan.exchange(true, ordering: .acquiringAndReleasing) { end() }
  }

  // The store below is relaxed because it is made in a forked child, which has only one thread.
  private static let mainEndBegan = Atomic<Bool>(false)

  static func forgetEndOfMain() { mainEndBegan.store(false, ordering: .relaxed) }

  /// Whether the loop has ended because the process's main thread has exited.
  var isLeftMain: Bool { self === RunLoop.mainIfMade && RunLoop.mainThreadHasLeft }

  /// The error that explains why a loop that has ended rejects items and blocks.
  package var endedError: RunLoopError { isLeftMain ? .mainThreadHasLeft : .loopHasEnded }

  /// Reports a rejection by a loop that has ended, for APIs that cannot throw.
  func reportEnded(_ what: @autoclosure () -> String) {
    if isLeftMain {
      Diagnostic.mainThreadHasLeft.report("the main run loop rejected \(what()): \(RunLoopError.mainThreadHasLeft)")
    } else {
      Diagnostic.endedLoop.report(
        "the run loop of \(threadDescription) rejected \(what()), which could never run: hand work to a thread that lives, such "
          + "as a ResidentThread, and stop posting when it ends")
    }
  }
}

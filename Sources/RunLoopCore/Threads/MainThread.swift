// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// The process's first thread may leave long before the process ends: libdispatch gives it up in a program with an
// `async` main. Its loop then ends at once, because the thread never reaches the second round of destructors.
extension RunLoop {
  /// Whether the process's first thread has left, so that nothing can run on it any more; can be used from any thread.
  package static var mainThreadHasLeft: Bool { crl_main_thread_has_left() != 0 }

  /// Makes a main loop that has just been made end with its thread, which may have left meanwhile.
  static func watchMainThread(_ made: RunLoop) {
    _ = crl_hook_exchange(CRL_HOOK_MAIN_LOOP_ENDS) { _ in RunLoop.endMain() }
    if mainThreadHasLeft { made.endWithThread() }
  }

  /// The main thread's last step before it leaves.
  private static func endMain() {
    detachCurrent()
    mainIfMade?.endWithThread()
    rejectCurrent()
  }

  /// Ends the loop; the main loop only once, even if its thread is leaving while another thread makes it.
  func endWithThread() {
    guard self === RunLoop.mainIfMade else { return end() }
    if !RunLoop.mainEndBegan.exchange(true, ordering: .acquiringAndReleasing) { end() }
  }

  // Relaxed where it is forgotten: that is in a forked child, which has one thread.
  private static let mainEndBegan = Atomic<Bool>(false)

  static func forgetEndOfMain() { mainEndBegan.store(false, ordering: .relaxed) }

  /// Whether the loop has ended because the process's first thread has left.
  var isLeftMain: Bool { self === RunLoop.mainIfMade && RunLoop.mainThreadHasLeft }

  /// The reason why a loop that has ended rejects items and blocks.
  package var endedError: RunLoopError { isLeftMain ? .mainThreadHasLeft : .loopHasEnded }

  /// Reports the same, for spellings that have no error.
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

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

extension RunLoop {
  /// How late the system may end a sleep of the loop's thread, or nil for the slack that the thread has anyway.
  ///
  /// Linux lets the sleeps of a thread end up to 50 microseconds late, so that it may end several with one interrupt.
  /// To have timers fire in time, set this to a nanosecond. It takes effect before the loop's next sleep until a date
  /// and holds for the whole thread, and for threads and processes that the thread makes from then on; nil restores the
  /// thread's former slack. Less than a nanosecond counts as one, and more than a minute as a minute, so that each
  /// sleep ends. A loop on virtual time ignores it. Can be used from any thread.
  ///
  /// The corresponding system call is `prctl` with `PR_SET_TIMERSLACK`.
  public var timerSlack: Duration? {
    get {
      let nanoseconds = slack.load(ordering: .relaxed)
      return nanoseconds == 0 ? nil : .nanoseconds(nanoseconds)
    }
    set { slack.store(newValue?.slackNanoseconds ?? 0, ordering: .relaxed) }
  }

  /// Sets the thread's slack to the requested one; called on the loop's thread.
  @inline(never)
  func applySlack() {
    appliedSlack = slack.load(ordering: .relaxed)
    if isOnSystemTime { crl_set_timer_slack(UInt(appliedSlack)) }
  }
}

extension Duration {
  /// The nanoseconds of a slack that the system is asked for.
  package var slackNanoseconds: Int64 { min(max(1, Int64(saturating: self)), 60_000_000_000) }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

extension RunLoop {
  /// How late the system may end a sleep of the loop's thread, or `nil` for the thread's original slack.
  ///
  /// The default is `nil`. By default, Linux may end a thread's sleep up to 50 microseconds late, in order to serve
  /// several sleeps with one interrupt. Set this to a nanosecond to make timers fire more precisely. The value takes
  /// effect before the loop's next timed sleep. It applies to the whole thread, and to the threads and processes that
  /// the thread creates from then on. Values are clamped to between a nanosecond and a minute. A loop on virtual time
  /// ignores this property. Can be used from any thread.
  ///
  /// The corresponding system call is `prctl` with `PR_SET_TIMERSLACK`.
  public var timerSlack: Duration? {
    get {
      let nanoseconds = slack.load(ordering: .relaxed)
      return nanoseconds == 0 ? nil : .nanoseconds(nanoseconds)
    }
    set { slack.store(newValue?.slackNanoseconds ?? 0, ordering: .relaxed) }
  }

  /// Applies the requested slack to the thread; must be called on the loop's thread.
  @inline(never)
  func applySlack() {
    appliedSlack = slack.load(ordering: .relaxed)
    if isOnSystemTime { crl_set_timer_slack(UInt(appliedSlack)) }
  }
}

extension Duration {
  /// The duration as a valid timer slack in nanoseconds.
  package var slackNanoseconds: Int64 { min(max(1, Int64(saturating: self)), 60_000_000_000) }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The atomic that a loop sleeps on and that its posters read.
///
/// **Why no wake-up is lost.** A poster stores its work under a lock and then reads the word (``post(_:)``). The loop
/// announces its sleep in the word, checks for work under the same locks, and then sleeps only while the word still has
/// the announced value. If the poster acquired the lock first, the loop finds the work. If the loop did, the poster
/// acquires the lock after it, reads the announcement and wakes the loop.
struct WakeWord: ~Copyable {
  // Loads before an exchange and failed exchanges are relaxed, because the exchange checks the value.
  private let word = Atomic<UInt32>(WakeState.idle.bits)

  var state: WakeState {
    WakeState(bits: word.load(ordering: .acquiring))
  }

  /// Applies an event, and returns the states before and after it and the sleeper to wake.
  @inline(__always)
  @discardableResult
  borrowing func apply(_ event: WakeState.Event) -> (before: WakeState, after: WakeState, woken: WakeState.Sleeper) {
    var bits = word.load(ordering: .relaxed)
    while true {
      let before = WakeState(bits: bits)
      let (after, woken) = before.applying(event)
      let (exchanged, original) = word.weakCompareExchange(
        expected: bits, desired: after.bits, successOrdering: .acquiringAndReleasing, failureOrdering: .relaxed)
      if exchanged { return (before, after, woken) }
      bits = original
    }
  }

  /// Whether there is a sleeper to wake.
  @inline(__always)
  var hasSleeper: Bool { WakeState(bits: word.load(ordering: .acquiring)).sleeper != .nobody }

  /// Removes the sleeper from the word if the loop sleeps, and returns the sleeper to wake.
  ///
  /// If the loop is awake, this costs one load. The posted work must be guarded by a lock that the loop acquires after
  /// it has announced its sleep.
  @inline(__always)
  borrowing func post(_ cause: WakeState.Cause = .unknown) -> WakeState.Sleeper {
    guard hasSleeper else { return .nobody }
    return apply(.post(cause)).woken
  }

  /// Wakes the thread that sleeps on the word itself.
  borrowing func wakeSleeper() {
    word.futexWake()
  }

  /// Sleeps on the futex while the state is `asleep`, until `deadline`.
  ///
  /// It may return early, so the caller must check for work again.
  borrowing func sleep(while asleep: WakeState, until deadline: Tick) {
    word.futexWait(while: asleep.bits, until: deadline)
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The atomic that a loop sleeps on and that its posters read.
///
/// **Why no wake-up is lost.** A poster stores its work under a lock and then reads the word (``post()``). The loop
/// announces its sleep in the word, then looks at all work under the same locks, and only then sleeps, and only while
/// the word still has the announced value. Either the poster's lock came first, and the loop finds the work; or the
/// loop's did, and the poster, having taken the lock after it, reads the announcement and wakes it.
struct WakeWord: ~Copyable {
  // Relaxed where a value is the first guess of an exchange, or one that did not succeed.
  private let word = Atomic<UInt32>(WakeState.idle.bits)

  var state: WakeState {
    WakeState(bits: word.load(ordering: .acquiring))
  }

  /// Applies an event and returns the state before and after it, and the sleeper to wake for it.
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

  /// Takes the loop out of its sleep, if it sleeps, and returns the sleeper to wake for it.
  ///
  /// If the loop is awake, this costs one load. The posted work must be behind a lock that the loop takes after it has
  /// announced its sleep.
  @inline(__always)
  borrowing func post(_ cause: WakeState.Cause = .unknown) -> WakeState.Sleeper {
    guard hasSleeper else { return .nobody }
    return apply(.post(cause)).woken
  }

  /// Wakes the thread that sleeps on the word itself.
  borrowing func wakeSleeper() {
    word.futexWake()
  }

  /// Sleeps on the futex while the word says `asleep`, until `deadline`.
  ///
  /// It may return early: the caller looks again.
  borrowing func sleep(while asleep: WakeState, until deadline: Tick) {
    word.futexWait(while: asleep.bits, until: deadline)
  }
}

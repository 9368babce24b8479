// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// How a loop reads the time and sleeps.
///
/// The loop announces its sleep in the wake word, looks for work once more, and calls ``sleep(on:while:until:in:)``.
/// Whatever ends the sleep, the loop looks again, so a waiter may return early.
protocol Waiter: AnyObject, Sendable {
  /// The name under which this waiter sleeps in the wake word: posters read from it how to wake.
  func sleeper(watching: Bool) -> WakeState.Sleeper
  /// The time by this waiter's clock; can be used from any thread.
  var now: Tick { get }
  /// The wall clock's current time when this waiter's clock is at zero, in nanoseconds since 2001; can be used from any
  /// thread.
  ///
  /// Setting the wall clock changes it.
  var wallOffset: Int64 { get }
  /// Sleeps while `word` says `asleep`, until `deadline` by this waiter's clock, or until a descriptor of `set` is
  /// ready.
  ///
  /// Called on the loop's own thread.
  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick, in set: PollSet?)
  /// Called on the loop's own thread when the loop has ended and will not sleep again.
  func loopHasEnded()
}

extension Waiter {
  func loopHasEnded() {}
}

/// Sleeps by the system's monotonic clock: on the wake word itself, without any descriptor, or in an epoll set if the
/// mode watches descriptors.
final class SystemWaiter: Waiter {
  static let shared = SystemWaiter()

  static var now: Tick { Tick(nanoseconds: crl_monotonic_nanoseconds()) }
  var now: Tick { SystemWaiter.now }

  /// The time, or a date that has always been reached if `tick` is a second ahead or more.
  ///
  /// A tick that is far ahead is compared with the time of the system's last clock tick, some milliseconds ago, because
  /// that is faster to read. If that time ever lags by more than a second, a date in the past is not recognised as
  /// past: it would come before dates that were due earlier.
  @inline(__always)
  static func now(unlessAheadOf tick: Tick) -> Tick {
    tick.nanoseconds > crl_coarse_nanoseconds() &+ 1_000_000_000 ? .distantPast : now
  }

  func sleeper(watching: Bool) -> WakeState.Sleeper { watching ? .epoll : .futex }

  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick, in set: PollSet?) {
    guard let set else { return word.sleep(while: asleep, until: deadline) }
    set.wait(deadline == .never ? nil : max(0, (deadline + -now.nanoseconds).nanoseconds))
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// A way for a loop to read the time and to sleep.
///
/// The loop announces its sleep in the wake word, checks for work once more, and calls ``sleep(on:while:until:in:)``.
/// A waiter may return early, because the loop checks for work again whenever a sleep ends.
protocol Waiter: AnyObject, Sendable {
  /// Returns the kind of sleeper that this waiter announces in the wake word; it determines how posters wake the loop.
  func sleeper(watching: Bool) -> WakeState.Sleeper
  /// The time by this waiter's clock; can be read from any thread.
  var now: Tick { get }
  /// The wall clock's current time when this waiter's clock is at zero, in nanoseconds since 2001; can be read from any
  /// thread.
  ///
  /// Setting the wall clock changes it.
  var wallOffset: Int64 { get }
  /// Sleeps while the state of `word` is `asleep`, until `deadline` by this waiter's clock, or until a descriptor of
  /// `set` is ready.
  ///
  /// Called on the loop's own thread.
  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick, in set: PollSet?)
  /// Called on the loop's own thread when the loop has ended and will not sleep again.
  func loopHasEnded()
}

extension Waiter {
  func loopHasEnded() {}
}

/// Sleeps by the system's monotonic clock: in an epoll set if the mode watches descriptors, otherwise on the wake word
/// itself, without any descriptor.
final class SystemWaiter: Waiter {
  static let shared = SystemWaiter()

  static var now: Tick { Tick(nanoseconds: crl_monotonic_nanoseconds()) }
  var now: Tick { SystemWaiter.now }

  /// Returns the time, or ``Tick/distantPast`` if `tick` is more than a second in the future.
  ///
  /// The distance is measured from the time of the system's last clock tick, a few milliseconds ago, because that is
  /// faster to read. If that time ever lags by more than a second, a tick in the past may not be recognised as such,
  /// and would be ordered before dates that are already due.
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

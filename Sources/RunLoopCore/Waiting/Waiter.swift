import CRunLoopSystem

/// How a loop tells the time and sleeps.
///
/// The loop announces its sleep in the wake word as ``sleeper``, looks for work once more, and calls
/// ``sleep(on:while:until:)``. Whatever ends the sleep, the loop looks again, so a waiter may return early.
protocol Waiter: AnyObject, Sendable {
  /// The name under which this waiter sleeps in the wake word: posters read from it how to wake.
  var sleeper: WakeState.Sleeper { get }
  /// The time by this waiter's clock. Any thread.
  var now: Tick { get }
  /// Sleeps while `word` says `asleep`, until `deadline` by this waiter's clock. The loop's own thread.
  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick)
}

/// Sleeps on the wake word itself, by the system's monotonic clock.
///
/// It owns no descriptor.
final class FutexWaiter: Waiter {
  static let shared = FutexWaiter()

  var sleeper: WakeState.Sleeper { .futex }
  var now: Tick { Tick(nanoseconds: crl_monotonic_nanoseconds()) }

  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick) {
    word.sleep(while: asleep, until: deadline)
  }
}

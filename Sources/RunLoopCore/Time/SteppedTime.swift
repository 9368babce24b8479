// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// A clock that moves only when its loop would sleep.
///
/// A loop on virtual time is the real loop: it runs the same passes and sleeps through the same wake word, but a sleep
/// until a deadline sets the clock to the deadline and returns. Events that should happen from outside while the loop
/// sleeps are scheduled in advance with ``at(_:do:)``. A sleep without a deadline and without such an event is real,
/// and another thread can end it, or ``whenAsleepForEver(do:)`` handles it.
///
/// Only the tests of this package use it, with one loop on a thread of its own. Clients use `VirtualTime` of
/// RunLoopTesting instead.
package final class SteppedTime: @unchecked Sendable, Waiter {
  private struct Event {
    var tick: Tick
    var action: @Sendable () -> Void
  }

  // Sendable: the lock guards the variables.
  private let lock = Lock()
  private var time = Tick(nanoseconds: 0)
  private var events: [Event] = []
  private var endlessSleepAction: (@Sendable () -> Void)?
  private var sleeps = 0
  private var wall: Int64 = 0

  package init() {}

  /// The time, in nanoseconds since the clock was made.
  package var now: Tick { lock.withLock { time } }

  /// The wall clock starts at the year 2001 when this clock starts, so that its dates are exact.
  var wallOffset: Int64 { lock.withLock { wall } }

  /// How many times the loop has slept.
  package var sleepCount: Int { lock.withLock { sleeps } }

  func sleeper(watching: Bool) -> WakeState.Sleeper { .virtual }

  /// Schedules an action that runs while the loop sleeps past a time, as if another thread ran it.
  ///
  /// Events with the same time run in the order in which they were scheduled.
  package func at(_ time: Duration, do action: @escaping @Sendable () -> Void) {
    let event = Event(tick: Tick(nanoseconds: Int64(saturating: time)), action: action)
    lock.withLock {
      events.insert(event, at: events.firstIndex { $0.tick > event.tick } ?? events.endIndex)
    }
  }

  /// Runs `action` whenever the loop would sleep without a deadline and without an event; the action must wake the
  /// loop.
  package func whenAsleepForEver(do action: @escaping @Sendable () -> Void) {
    lock.withLock { endlessSleepAction = action }
  }

  /// Advances the clock, as work of that duration would.
  package func advance(by duration: Duration) {
    lock.withLock { time = time + Int64(saturating: duration) }
  }

  /// Sets the wall clock forward or back; the loop's own clock does not change.
  package func setWallClock(by duration: Duration) {
    lock.withLock { wall.addSaturating(duration) }
  }

  func sleep(on word: borrowing WakeWord, while asleep: WakeState, until deadline: Tick, in set: PollSet?) {
    lock.withLock { sleeps += 1 }
    while word.state == asleep {
      // Descriptors that are ready are served before the virtual time advances.
      set?.wait(0)
      if let set, set.hasWork { return }
      if let action = takeEvent(until: deadline) {
        action()
      } else if deadline == .never, let action = lock.withLock({ endlessSleepAction }) {
        action()
      } else if deadline == .never {
        if let set { return set.wait(nil) }
        return word.sleep(while: asleep, until: .never)
      } else {
        return lock.withLock { time = max(time, deadline) }
      }
    }
  }

  private func takeEvent(until deadline: Tick) -> (@Sendable () -> Void)? {
    lock.withLock {
      // An event may have let time pass beyond the deadline.
      guard let event = events.first, event.tick <= deadline, time <= deadline else { return nil }
      events.removeFirst()
      time = max(time, event.tick)
      return event.action
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CVirtualCalls

/// The time that Core Foundation sees on threads that have joined the clock.
///
/// It advances when a wait finds nothing ready, and on request.
final class VirtualClock: @unchecked Sendable {
  // Sendable: the clock has its own lock; the sleeper is set before a thread joins.
  private var clock: OpaquePointer?
  private var sleeper: (_ deadline: Int?) -> Sleep = { _ in .untilDeadline }

  /// The possible actions of a wait that finds nothing ready.
  enum Sleep {
    case untilDeadline
    /// Polls again, because something has changed.
    case lookAgain
  }

  static let nanosecondsOfTick: Int64 = 1_000_000_000

  init() {
    clock = cvc_clock_create(answerSleep, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { cvc_clock_destroy(clock) }

  /// Sets a closure that is called whenever a wait finds nothing ready, with the tick of the next timer or nil.
  func whenAsleep(_ sleeper: @escaping (_ deadline: Int?) -> Sleep) { self.sleeper = sleeper }

  /// Makes the calling thread join this clock, which must outlive it.
  func join() { cvc_clock_join(clock) }

  /// Whether a thread of this clock has created a timer.
  var hasTimers: Bool { cvc_clock_has_timers(clock) }

  /// The whole ticks since the clock was created.
  var tick: Int { Int(cvc_clock_now(clock) / Self.nanosecondsOfTick) }

  /// Advances the time.
  func advance(by ticks: Int) { cvc_clock_advance(clock, Int64(ticks) * Self.nanosecondsOfTick) }

  /// Calls `body` with a time that appears to be a number of microseconds later.
  func seeming(later microseconds: Int64, _ body: () -> Void) {
    cvc_clock_shift(clock, microseconds * 1000)
    body()
    cvc_clock_shift(clock, 0)
  }

  /// Advances the time to a tick unless it has passed; timers due at that tick do not expire yet.
  func move(to tick: Int) { cvc_clock_move(clock, Int64(tick) * Self.nanosecondsOfTick) }

  fileprivate func sleep(until deadline: Int64) -> cvc_sleep {
    switch sleeper(deadline == cvc_never ? nil : Int(deadline / Self.nanosecondsOfTick)) {
    case .untilDeadline: CVC_SLEEP_UNTIL_DEADLINE
    case .lookAgain: CVC_LOOK_AGAIN
    }
  }
}

private let cvc_never = Int64.max

private nonisolated func answerSleep(_ context: UnsafeMutableRawPointer?, _ deadline: Int64) -> cvc_sleep {
  guard let context else { return CVC_WAIT_FOR_EVENTS }
  return Unmanaged<VirtualClock>.fromOpaque(context).takeUnretainedValue().sleep(until: deadline)
}

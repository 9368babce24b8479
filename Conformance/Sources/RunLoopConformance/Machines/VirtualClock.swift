// SPDX-License-Identifier: Apache-2.0

import CVirtualCalls

/// The time that Core Foundation is told on the threads that have joined.
///
/// It moves when a wait finds nothing ready, and when it is told to.
final class VirtualClock: @unchecked Sendable {
  // Sendable: the clock has a lock of its own; the sleeper is set before a thread joins.
  private var clock: OpaquePointer?
  private var sleeper: (_ deadline: Int?) -> Sleep = { _ in .untilDeadline }

  /// What a wait is to do that has found nothing ready.
  enum Sleep {
    case untilDeadline
    /// Something was done meanwhile.
    case lookAgain
  }

  static let nanosecondsOfTick: Int64 = 1_000_000_000

  init() {
    clock = cvc_clock_create(answerSleep, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { cvc_clock_destroy(clock) }

  /// Asks `sleeper` whenever a wait has found nothing ready; it is given the tick of the next timer, nil for none.
  func whenAsleep(_ sleeper: @escaping (_ deadline: Int?) -> Sleep) { self.sleeper = sleeper }

  /// Puts the calling thread on this clock, which must live longer.
  func join() { cvc_clock_join(clock) }

  /// Whether a thread on this clock has made a timer.
  var hasTimers: Bool { cvc_clock_has_timers(clock) }

  /// The whole ticks since the clock was made.
  var tick: Int { Int(cvc_clock_now(clock) / Self.nanosecondsOfTick) }

  /// Lets the time pass.
  func advance(by ticks: Int) { cvc_clock_advance(clock, Int64(ticks) * Self.nanosecondsOfTick) }

  /// Calls `body`, to which the time seems to be so many microseconds later.
  func seeming(later microseconds: Int64, _ body: () -> Void) {
    cvc_clock_shift(clock, microseconds * 1000)
    body()
    cvc_clock_shift(clock, 0)
  }

  /// Moves the time on to a tick, unless it has come; what is due at that tick waits.
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

// SPDX-License-Identifier: Apache-2.0

/// Decides whether a thread polls briefly for the end of a wait before it sleeps.
///
/// Waking a thread takes a few microseconds, and tens of microseconds on a virtual processor. Polling occupies the
/// processor for as long as it lasts. So a wait polls only while other threads have ended recent waits within the time
/// that a sleep and a wake-up cost, and for no longer than that: unsuccessful polling at most doubles the cost of a
/// wait. The value records past waits and has no side effects; all times are in nanoseconds.
struct LookPolicy: Sendable, Hashable {
  /// The recently measured cost of a sleep and a wake-up; zero if it is not known yet.
  private(set) var cost: Int64 = 0
  /// A bit for each of the last eight waits, the latest one lowest: whether another thread ended it within the bound.
  private(set) var history: UInt8 = 0
  /// The number of further waits without polling, because the last polls were unsuccessful.
  private(set) var pause = 0
  /// The number of unsuccessful polls minus the number of successful ones, from 0 to 10.
  private var failures = 0
  /// The time until which no wait polls, because a polling thread lost its processor.
  private var restEnd = Tick.distantPast

  /// The number of the last eight waits, including the last two, that must have ended within the bound.
  static let quorum = 6
  /// The time without polling after a polling thread lost its processor to another thread.
  static let rest: Int64 = 1_000_000_000

  /// Whether the next wait should begin with polling, if the time allows.
  var isDue: Bool {
    history & 0b11 == 0b11 && history.nonzeroBitCount >= LookPolicy.quorum && pause == 0
  }

  /// Returns the maximum duration of polling now, at most `limit`; zero if the wait should not poll.
  func length(at now: Tick, until deadline: Tick, limit: Int64) -> Int64 {
    guard isDue, now >= restEnd else { return 0 }
    let bound = min(cost, limit)
    return deadline == .never ? bound : max(0, min(bound, (deadline + -now.nanoseconds).nanoseconds))
  }

  /// Records a sleep.
  ///
  /// - Parameters:
  ///   - idle: The time from the beginning of the wait to its end by another thread; nil if the wait timed out, or if
  ///     the time is unknown.
  ///   - latency: The time from then until the thread was awake; nil if it is unknown.
  ///   - limit: The maximum duration of polling.
  mutating func noteSleep(idle: Int64?, latency: Int64?, limit: Int64) {
    if let latency {
      // Falling asleep and the call that ends the sleep cost half as much as waking up.
      let sample = min(max(0, latency) * 3 / 2, 4 * limit)
      cost = cost == 0 ? sample : cost + (sample - cost) / 8
    }
    note(idle.map { $0 <= min(cost, limit) } ?? false)
  }

  /// Records polling that saw the end of the wait.
  mutating func noteSuccess() {
    failures = max(0, failures - 1)
    note(true)
  }

  /// Records unsuccessful polling, which a sleep follows, with its actual and its maximum duration.
  mutating func noteFailure(duration: Int64, length: Int64, at now: Tick) {
    if duration > 2 * length + 10_000 { restEnd = now + LookPolicy.rest }
    failures = min(failures + 1, 10)
    pause = 1 + 1 << failures
  }

  /// Suspends polling for a while, because a yield took longer than a sleep and a wake-up.
  mutating func takeRest(at now: Tick) { restEnd = now + LookPolicy.rest }

  private mutating func note(_ isWithinBound: Bool) {
    history = history << 1 | (isWithinBound ? 1 : 0)
    pause = max(0, pause - 1)
  }
}

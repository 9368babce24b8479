// SPDX-License-Identifier: Apache-2.0

/// Decides whether to look briefly for what would end a wait, before sleeping.
///
/// Being woken costs a thread some microseconds, and on a virtual processor some tens of them. A look costs the
/// processor for as long as it lasts. So there is a look only while recent waits have been ended by another thread
/// within the time that a sleep and a wake cost, and it lasts no longer than that: a look in vain costs at most as much
/// again. The value holds what was seen, and has no effects; all times are in nanoseconds.
struct LookPolicy: Sendable, Hashable {
  /// The cost of a sleep and a wake here, as seen lately; zero if it is not known yet.
  private(set) var cost: Int64 = 0
  /// A bit for each of the last eight waits, the last one lowest: whether another thread has ended it within the bound.
  private(set) var history: UInt8 = 0
  /// For how many more waits there is no look, because the last looks were in vain.
  private(set) var pause = 0
  /// How many looks were in vain, minus the looks that were not.
  private var failures = 0
  /// Until when there is no look, because one has lost its processor.
  private var restEnd = Tick.distantPast

  /// How many of the last eight waits must have ended within the bound, including the last two.
  static let quorum = 6
  /// For how long there is no look after one that has lost its processor to another thread.
  static let rest: Int64 = 1_000_000_000

  /// Whether the coming wait is to begin with a look, if the time allows.
  var isDue: Bool {
    history & 0b11 == 0b11 && history.nonzeroBitCount >= LookPolicy.quorum && pause == 0
  }

  /// How long a look may last, at most `limit`; zero if there is none now.
  func length(at now: Tick, until deadline: Tick, limit: Int64) -> Int64 {
    guard isDue, now >= restEnd else { return 0 }
    let bound = min(cost, limit)
    return deadline == .never ? bound : max(0, min(bound, (deadline + -now.nanoseconds).nanoseconds))
  }

  /// Notes a sleep.
  ///
  /// - Parameters:
  ///   - idle: How long after the beginning of the wait it was ended; nil if its time was over, or if that is not
  ///     known.
  ///   - latency: How long after that the thread was awake; nil if that is not known.
  ///   - limit: The longest look that is allowed.
  mutating func noteSleep(idle: Int64?, latency: Int64?, limit: Int64) {
    if let latency {
      // The way into the sleep and the call that ends it cost half as much as the way out.
      let sample = min(max(0, latency) * 3 / 2, 4 * limit)
      cost = cost == 0 ? sample : cost + (sample - cost) / 8
    }
    note(idle.map { $0 <= min(cost, limit) } ?? false)
  }

  /// Notes a look during which the wait was ended.
  mutating func noteSuccess() {
    failures = max(0, failures - 1)
    note(true)
  }

  /// Notes a look in vain, which a sleep follows: how long it was, and how long it was allowed to be.
  mutating func noteFailure(duration: Int64, length: Int64, at now: Tick) {
    if duration > 2 * length + 10_000 { restEnd = now + LookPolicy.rest }
    failures = min(failures + 1, 10)
    pause = 1 + 1 << failures
  }

  /// Suspends looks for a while, because a yield took longer than a sleep and a wake would have.
  mutating func takeRest(at now: Tick) { restEnd = now + LookPolicy.rest }

  private mutating func note(_ isWithinBound: Bool) {
    history = history << 1 | (isWithinBound ? 1 : 0)
    pause = max(0, pause - 1)
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A pseudo-random sequence that is the same in each run.
struct Shuffle {
  private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

  mutating func next(_ bound: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(bound))
  }
}

/// Operations on timers among many others.
enum TimerWork: String { case moves, removals, makes, pairs, schedules, requests }

nonisolated func liveTimers(_ count: Int, among live: Int, _ what: TimerWork) {
  let loop = RunLoop.current
  let base = loop.now
  var shuffle = Shuffle()
  var timers = (0..<live).map { _ in
    let timer = Timer(deadline: base.advanced(by: .nanoseconds(60_000_000_000 + shuffle.next(60_000_000_000)))) { _ in }
    loop.add(timer, forMode: .default)
    return timer
  }
  var last = base.advanced(by: .seconds(120))
  /// A date later than all before.
  func date() -> SuspendingClock.Instant {
    last = last.advanced(by: .nanoseconds(6000))
    return last
  }
  let extra = Timer(deadline: last) { _ in }
  let timedOut = Counter()
  let start = processorNanoseconds()
  for _ in 0..<count {
    let index = shuffle.next(live)
    switch what {
    case .moves: timers[index].deadline = date()
    case .removals:
      loop.remove(timers[index], forMode: .default)
      timers[index].deadline = date()
      loop.add(timers[index], forMode: .default)
    case .pairs:
      extra.deadline = date()
      loop.add(extra, forMode: .default)
      loop.remove(extra, forMode: .default)
    case .schedules:
      timers[index].invalidate()
      timers[index] = loop.schedule(in: .milliseconds(60_000 + index)) { _ in }
    case .requests:
      // A timeout for a request whose response arrives in time.
      loop.schedule(in: .milliseconds(60_000 + index)) { _ in if index >= 0 { _ = timedOut.add() } }.invalidate()
    case .makes:
      timers[index].invalidate()
      timers[index] = Timer(deadline: date()) { _ in }
      loop.add(timers[index], forMode: .default)
    }
  }
  report(what.rawValue, count, start, now: processorNanoseconds())
}

/// Creates timers that fire once, at random dates within a tenth of a second, or two seconds for a million timers.
nonisolated func shots(_ count: Int) {
  let loop = RunLoop.current
  let counter = Counter()
  let span = count < 1_000_000 ? 100_000_000 : 2_000_000_000
  var shuffle = Shuffle()
  let start = processorNanoseconds()
  for _ in 0..<count {
    loop.schedule(in: .nanoseconds(shuffle.next(span))) { _ in if counter.add() == count { loop.stop() } }
  }
  report("making", count, start, now: processorNanoseconds())
  loop.runUntilStopped()
  report("all", count, start, now: processorNanoseconds())
}

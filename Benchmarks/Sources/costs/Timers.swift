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

/// Moves timers, removes and adds them, or replaces them, among many others.
nonisolated func liveTimers(_ count: Int, among live: Int, _ what: String) {
  let loop = RunLoop.current
  let base = loop.now
  var shuffle = Shuffle()
  var timers = (0..<live).map { _ in
    let timer = Timer(deadline: base.advanced(by: .nanoseconds(60_000_000_000 + shuffle.next(60_000_000_000)))) { _ in }
    loop.add(timer, forMode: .default)
    return timer
  }
  var date = base.advanced(by: .seconds(120))
  let extra = Timer(deadline: date) { _ in }
  let start = nanoseconds()
  for _ in 0..<count {
    let index = shuffle.next(live)
    date = date.advanced(by: .nanoseconds(6000))
    switch what {
    case "moves": timers[index].deadline = date
    case "removals":
      loop.remove(timers[index], forMode: .default)
      timers[index].deadline = date
      loop.add(timers[index], forMode: .default)
    case "pairs":
      extra.deadline = date
      loop.add(extra, forMode: .default)
      loop.remove(extra, forMode: .default)
    default:
      timers[index].invalidate()
      timers[index] = Timer(deadline: date) { _ in }
      loop.add(timers[index], forMode: .default)
    }
  }
  report(what, count, start)
}

/// Creates timers that fire once, at random dates within a tenth of a second.
nonisolated func shots(_ count: Int) {
  let loop = RunLoop.current
  let counter = Counter()
  let base = loop.now
  var shuffle = Shuffle()
  let start = nanoseconds()
  for _ in 0..<count {
    let date = base.advanced(by: .nanoseconds(shuffle.next(100_000_000)))
    loop.add(Timer(deadline: date) { _ in if counter.add() == count { loop.stop() } }, forMode: .default)
  }
  report("making", count, start)
  loop.runUntilStopped()
  report("all", count, start)
}

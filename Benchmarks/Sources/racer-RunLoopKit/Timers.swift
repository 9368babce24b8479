// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore

extension SuspendingClock.Instant {
  /// Returns an instant `nanoseconds` later.
  func later(_ nanoseconds: Int64) -> Self { advanced(by: .nanoseconds(nanoseconds)) }
}

/// The client's part of moving a timer, without the move.
private func use(_ timer: Timer, _ date: SuspendingClock.Instant) {
  withExtendedLifetime(timer) {
    let (words, timer) = (unsafeBitCast(date, to: (Int64, Int64).self), Unmanaged.passUnretained(timer))
    race_use(timer.toOpaque(), words.0, words.1)
  }
}

/// Counts timers as they fire, and stops the loop after the last.
private final class Countdown: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let loop: RunLoop
  private var left: Int64
  private(set) var end: Int64 = 0

  init(_ loop: RunLoop, _ count: Int64) {
    self.loop = loop
    left = count
  }

  func fire() {
    left -= 1
    guard left == 0 else { return }
    end = race_now()
    loop.stop()
  }
}

func w5() {
  let loop = RunLoop.current
  var shots = OneShots(1_000_000)
  let countdown = Countdown(loop, shots.count)
  let fire: @Sendable (Timer) -> Void = { _ in countdown.fire() }
  let base = loop.now
  shots.create { delay in loop.add(Timer(deadline: base.later(delay), block: fire), forMode: .default) }
  loop.runUntilStopped()
  let timer = Timer(deadline: base, block: fire)
  shots.report(end: countdown.end) { delay in use(timer, base.later(delay)) }
}

/// Creates timers that do not fire during the measurement.
private func liveTimers(_ count: Int64, _ random: inout RandomDates) -> [Timer] {
  let loop = RunLoop.current
  let base = loop.now
  var timers: [Timer] = []
  for _ in 0..<count {
    let timer = Timer(deadline: base.later(random.far())) { _ in race_check(false, "a timer has fired") }
    loop.add(timer, forMode: .default)
    timers.append(timer)
  }
  return timers
}

func w6() {
  let loop = RunLoop.current
  let live = race_sized(100_000)
  var random = RandomDates()
  var timers = liveTimers(live, &random)
  let base = loop.now
  // Removes and re-adds the same timer, as with a libev watcher.
  Stopwatch.report("cancel a random one and add one", 1_000_000) {
    let timer = timers[random.index(live)]
    loop.remove(timer, forMode: .default)
    timer.deadline = base.later(random.far())
    loop.add(timer, forMode: .default)
  } client: {
    use(timers[random.index(live)], base.later(random.far()))
  }
  let extra = Timer(deadline: base.later(random.far())) { _ in race_check(false, "a timer has fired") }
  Stopwatch.report("add one and cancel it", 1_000_000) {
    extra.deadline = base.later(random.far())
    loop.add(extra, forMode: .default)
    loop.remove(extra, forMode: .default)
  } client: {
    use(extra, base.later(random.far()))
  }
  let made = Stopwatch.time(1_000_000) {
    let index = random.index(live)
    timers[index].invalidate()
    timers[index] = Timer(deadline: base.later(random.far())) { _ in race_check(false, "a timer has fired") }
    loop.add(timers[index], forMode: .default)
  }
  race_report("end a random one and make one", made, "ns")
  let ended = Stopwatch.time(1_000_000) {
    loop.schedule(in: .nanoseconds(random.far())) { _ in race_check(false, "a timer has fired") }.invalidate()
  }
  race_report("make one and end it", ended, "ns")
}

func w7() {
  let live = race_sized(10_000)
  var random = RandomDates()
  let timers = liveTimers(live, &random)
  var date = RunLoop.current.now.later(120_000_000_000)
  Stopwatch.report("move a date later", 10_000_000) {
    date = date.later(6000)
    timers[random.index(live)].deadline = date
  } client: {
    date = date.later(6000)
    use(timers[random.index(live)], date)
  }
}

func w10() {
  let loop = RunLoop.current
  // The kernel's default timer slack, and the minimum that a thread can request.
  for (name, slack) in [("RunLoopKit (usual slack)", nil), ("RunLoopKit", Duration.nanoseconds(1))] {
    race_set_peer(name)
    loop.timerSlack = slack
    let ticks = TimerTicks(race_scaled(500, 20))
    ticks.start(on: loop)
    loop.runUntilStopped()
    ticks.report()
  }
}

private final class TimerTicks: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private static let period: Int64 = 1_000_000
  private let ticks: OpaquePointer?
  private var last: SuspendingClock.Instant?

  init(_ count: Int64) { ticks = race_ticks_make(TimerTicks.period, count) }

  func start(on loop: RunLoop) {
    race_ticks_start(ticks)
    let begin = loop.now
    last = begin
    let first = begin.later(TimerTicks.period)
    let timer = Timer(deadline: first, interval: .nanoseconds(TimerTicks.period)) { [self] timer in
      // Missed dates are skipped.
      let periods = last.map { $0.duration(to: timer.deadline) / .nanoseconds(TimerTicks.period) } ?? 1
      last = timer.deadline
      guard race_tick(ticks, Int64(periods.rounded())) else { return }
      timer.invalidate()
      loop.stop()
    }
    loop.add(timer, forMode: .default)
  }

  func report() { race_ticks_report(ticks) }
}

func w12() {
  raceMemory(timers: 100_000) { count in
    var random = RandomDates()
    kept = liveTimers(count, &random)
  }
  raceMemory { _ = startLoop() }
}

/// Keeps the timers of W12 alive until the process ends.
nonisolated(unsafe) private var kept: [Timer] = []

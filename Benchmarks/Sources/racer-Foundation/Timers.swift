// SPDX-License-Identifier: Apache-2.0

import CRace
import CoreFoundation
import Foundation
import Race

/// Counts timers as they fire.
private final class Countdown: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private(set) var left: Int64
  private(set) var end: Int64 = 0

  init(_ count: Int64) { left = count }

  func fire() {
    left -= 1
    if left == 0 { end = race_now() }
  }
}

// Only 100,000 timers, as the cost of each grows with their number.
func w5() {
  let loop = RunLoop.current
  var shots = OneShots(100_000)
  let countdown = Countdown(shots.count)
  let fire: @Sendable (Timer) -> Void = { _ in countdown.fire() }
  let base = Date()
  shots.create { delay in
    loop.add(Timer(fire: base + Double(delay) * 1e-9, interval: 0, repeats: false, block: fire), forMode: .default)
  }
  while countdown.left > 0 { _ = loop.run(mode: .default, before: .distantFuture) }
  shots.report(end: countdown.end)
}

private func makeTimer(_ date: Date) -> Timer {
  Timer(fire: date, interval: 0, repeats: false) { _ in race_check(false, "a timer has fired") }
}

/// Creates timers with ascending dates, which is fast, that do not fire during the measurement.
private func liveTimers(_ count: Int64, _ base: Date) -> [Timer] {
  (0..<count).map { index in
    let timer = makeTimer(base + 60 + 60 * Double(index) / Double(count))
    RunLoop.current.add(timer, forMode: .default)
    return timer
  }
}

func w6() {
  let loop = RunLoop.current
  let live = race_sized(100_000)
  var random = RandomDates()
  let base = Date()
  var timers = liveTimers(live, base)
  // An invalidated timer cannot be reused, and there is no other way to remove it.
  let batch = Int(race_scaled(100, 10))
  let made = Stopwatch.time(1000, batch: batch) {
    let index = random.index(live)
    timers[index].invalidate()
    timers[index] = makeTimer(base + Double(random.far()) * 1e-9)
    loop.add(timers[index], forMode: .default)
  }
  race_report("cancel a random one and add one", made, "ns")
  let added = Stopwatch.time(1000, batch: batch) {
    let extra = makeTimer(base + Double(random.far()) * 1e-9)
    loop.add(extra, forMode: .default)
    extra.invalidate()
  }
  race_report("add one and cancel it", added, "ns")
}

func w7() {
  let live = race_sized(10_000)
  var random = RandomDates()
  let base = Date()
  let timers = liveTimers(live, base)
  var date = base + 120
  let moved = Stopwatch.time(20_000, batch: 100) {
    date += 6e-6
    timers[random.index(live)].fireDate = date
  }
  race_report("move a date later", moved, "ns")
}

/// The ticks of W10.
private final class Ticks: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let ticks = race_ticks_make(1_000_000, race_scaled(500, 20))
  private var last = Date()
  private(set) var isOver = false

  func start() -> Timer {
    race_ticks_start(ticks)
    last = Date()
    return Timer(fire: last + 0.001, interval: 0.001, repeats: true) { self.fire($0) }
  }

  private func fire(_ timer: Timer) {
    // In its own call-out a timer still has the date for which it fires; missed dates are skipped.
    let periods = (timer.fireDate.timeIntervalSince(last) * 1000).rounded()
    last = timer.fireDate
    if race_tick(ticks, Int64(periods)) { isOver = true }
  }

  func report() { race_ticks_report(ticks) }
}

func w10() {
  let ticks = Ticks()
  RunLoop.current.add(ticks.start(), forMode: .default)
  // A timer does not end a run, so the run's time is limited to shortly after the last tick.
  while !ticks.isOver { _ = RunLoop.current.run(mode: .default, before: Date() + 0.01) }
  ticks.report()
}

func w12() {
  raceMemory(timers: 100_000) { kept = liveTimers($0, Date()) }
  raceMemory { _ = Loop.start() }
}

/// Keeps the timers of W12 alive until the process ends.
private var kept: [Timer] = []

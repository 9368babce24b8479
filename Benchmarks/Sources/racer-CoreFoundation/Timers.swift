// SPDX-License-Identifier: Apache-2.0

import CRace
import CoreFoundation
import Foundation
import Race

/// Counts timers as they fire, and stops the loop after the last.
private final class Countdown {
  private let loop: CFRunLoop
  private var left: Int64
  private(set) var end: Int64 = 0

  init(_ loop: CFRunLoop, _ count: Int64) {
    self.loop = loop
    left = count
  }

  func fire() {
    left -= 1
    guard left == 0 else { return }
    end = race_now()
    CFRunLoopStop(loop)
  }
}

// Only 100,000 timers, as the cost of each grows with their number.
func w5() {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  var shots = OneShots(100_000)
  let countdown = Countdown(loop, shots.count)
  var context = CFRunLoopTimerContext()
  context.info = Unmanaged.passUnretained(countdown).toOpaque()
  let base = CFAbsoluteTimeGetCurrent()
  shots.create { delay in
    let timer = CFRunLoopTimerCreate(
      nil, base + Double(delay) * 1e-9, 0, 0, 0,
      { _, info in
        if let info { Unmanaged<Countdown>.fromOpaque(info).takeUnretainedValue().fire() }
      }, &context)
    CFRunLoopAddTimer(loop, timer, defaultMode)
  }
  CFRunLoopRun()
  shots.report(end: countdown.end)
}

private func makeTimer(_ date: Double) -> CFRunLoopTimer? {
  CFRunLoopTimerCreate(nil, date, 0, 0, 0, { _, _ in race_check(false, "a timer has fired") }, nil)
}

/// Creates timers that do not fire during the measurement.
private func liveTimers(_ count: Int64, _ date: () -> Double) -> [CFRunLoopTimer?] {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  var timers: [CFRunLoopTimer?] = []
  for _ in 0..<count {
    let timer = makeTimer(date())
    CFRunLoopAddTimer(loop, timer, defaultMode)
    timers.append(timer)
  }
  return timers
}

/// Returns ascending dates, so that the creation of many timers is fast.
private func ascending(_ count: Int64, from base: Double) -> () -> Double {
  var index = 0.0
  return {
    index += 1
    return base + 60 + 60 * index / Double(count)
  }
}

func w6() {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  let live = race_sized(100_000)
  var random = RandomDates()
  let base = CFAbsoluteTimeGetCurrent()
  var timers = liveTimers(live, ascending(live, from: base))
  let batch = Int(race_scaled(100, 10))
  let reused = Stopwatch.time(1000, batch: batch) {
    let timer = timers[random.index(live)]
    CFRunLoopRemoveTimer(loop, timer, defaultMode)
    CFRunLoopTimerSetNextFireDate(timer, base + Double(random.far()) * 1e-9)
    CFRunLoopAddTimer(loop, timer, defaultMode)
  }
  race_report("cancel a random one and add one", reused, "ns")
  let extra = makeTimer(base + 60)
  let added = Stopwatch.time(1000, batch: batch) {
    CFRunLoopTimerSetNextFireDate(extra, base + Double(random.far()) * 1e-9)
    CFRunLoopAddTimer(loop, extra, defaultMode)
    CFRunLoopRemoveTimer(loop, extra, defaultMode)
  }
  race_report("add one and cancel it", added, "ns")
  let made = Stopwatch.time(1000, batch: batch) {
    let index = random.index(live)
    CFRunLoopTimerInvalidate(timers[index])
    timers[index] = makeTimer(base + Double(random.far()) * 1e-9)
    CFRunLoopAddTimer(loop, timers[index], defaultMode)
  }
  race_report("end a random one and make one", made, "ns")
}

func w7() {
  let live = race_sized(10_000)
  var random = RandomDates()
  let base = CFAbsoluteTimeGetCurrent()
  let timers = liveTimers(live, ascending(live, from: base))
  var date = base + 120
  let moved = Stopwatch.time(20_000, batch: 100) {
    date += 6e-6
    CFRunLoopTimerSetNextFireDate(timers[random.index(live)], date)
  }
  race_report("move a date later", moved, "ns")
}

private final class Ticks {
  let loop: CFRunLoop = CFRunLoopGetCurrent()
  let ticks = race_ticks_make(1_000_000, race_scaled(500, 20))
  var last = 0.0

  func fire(_ timer: CFRunLoopTimer?) {
    // In its own call-out a timer still has the date for which it fires; missed dates are skipped.
    let date = CFRunLoopTimerGetNextFireDate(timer)
    let periods = ((date - last) * 1000).rounded()
    last = date
    if race_tick(ticks, Int64(periods)) { CFRunLoopStop(loop) }
  }
}

func w10() {
  let ticks = Ticks()
  var context = CFRunLoopTimerContext()
  context.info = Unmanaged.passUnretained(ticks).toOpaque()
  race_ticks_start(ticks.ticks)
  ticks.last = CFAbsoluteTimeGetCurrent()
  let timer = CFRunLoopTimerCreate(
    nil, ticks.last + 0.001, 0.001, 0, 0,
    { timer, info in
      if let info { Unmanaged<Ticks>.fromOpaque(info).takeUnretainedValue().fire(timer) }
    }, &context)
  CFRunLoopAddTimer(ticks.loop, timer, defaultMode)
  CFRunLoopRun()
  race_ticks_report(ticks.ticks)
}

func w12() {
  raceMemory(timers: 100_000) { count in
    kept = liveTimers(count, ascending(count, from: CFAbsoluteTimeGetCurrent()))
  }
  raceMemory { _ = Loop.start() }
}

/// Keeps the timers of W12 alive until the process ends.
private var kept: [CFRunLoopTimer?] = []

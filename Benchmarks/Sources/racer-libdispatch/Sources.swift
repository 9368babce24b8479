// SPDX-License-Identifier: Apache-2.0

import CRace
import Dispatch
import Race

/// Counts timers as they fire.
private final class Countdown: @unchecked Sendable {
  // Sendable: used by the queue only, and read when the gate is open.
  private let gate = Gate()
  private var left: Int64
  private var end: Int64 = 0

  init(_ count: Int64) { left = count }

  func fire() {
    left -= 1
    guard left == 0 else { return }
    end = race_now()
    gate.open()
  }

  func wait() -> Int64 {
    gate.wait()
    return end
  }
}

func w5() {
  let queue = startLoop()
  var shots = OneShots(1_000_000)
  let countdown = Countdown(shots.count)
  let base = DispatchTime.now()
  let fire: @Sendable @convention(block) () -> Void = { countdown.fire() }
  shots.create { delay in queue.asyncAfter(deadline: base + .nanoseconds(Int(delay)), execute: fire) }
  shots.report(end: countdown.wait())
}

private func makeTimer(_ queue: DispatchQueue, _ date: DispatchTime) -> any DispatchSourceTimer {
  let timer = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
  timer.setEventHandler { race_check(false, "a timer has fired") }
  timer.schedule(deadline: date)
  timer.activate()
  return timer
}

func w6() {
  let queue = startLoop()
  let live = race_sized(100_000)
  var random = RandomDates()
  let base = DispatchTime.now()
  var timers = (0..<live).map { _ in makeTimer(queue, base + .nanoseconds(Int(random.far()))) }
  let made = Stopwatch.time(1_000_000) {
    let index = random.index(live)
    timers[index].cancel()
    timers[index] = makeTimer(queue, base + .nanoseconds(Int(random.far())))
  }
  race_report("cancel a random one and add one", made, "ns")
  let added = Stopwatch.time(1_000_000) { makeTimer(queue, base + .nanoseconds(Int(random.far()))).cancel() }
  race_report("add one and cancel it", added, "ns")
}

func w7() {
  let queue = startLoop()
  let live = race_sized(10_000)
  var random = RandomDates()
  let base = DispatchTime.now()
  let timers = (0..<live).map { _ in makeTimer(queue, base + .nanoseconds(Int(random.far()))) }
  var date = base + 120
  let moved = Stopwatch.time(10_000_000) {
    date = date + .nanoseconds(6000)
    timers[random.index(live)].schedule(deadline: date)
  }
  race_report("move a date later", moved, "ns")
}

func w10() {
  let (queue, gate) = (startLoop(), Gate())
  let timer = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
  let ticks = Ticks()
  timer.setEventHandler {
    if ticks.fire(Int64(timer.data)) { gate.open() }
  }
  ticks.start()
  timer.schedule(deadline: .now() + .milliseconds(1), repeating: .milliseconds(1), leeway: .nanoseconds(0))
  timer.activate()
  gate.wait()
  timer.cancel()
  ticks.report()
}

private final class Ticks: @unchecked Sendable {
  // Sendable: used by the queue only, and read when the gate is open.
  private let ticks = race_ticks_make(1_000_000, race_scaled(500, 20))

  func start() { race_ticks_start(ticks) }
  func fire(_ periods: Int64) -> Bool { race_tick(ticks, periods) }
  func report() { race_ticks_report(ticks) }
}

private func watch(
  _ descriptor: Int32, _ queue: DispatchQueue, _ ready: @escaping @Sendable (any DispatchSourceRead) -> Void
) -> any DispatchSourceRead {
  let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
  source.setEventHandler { ready(source) }
  source.activate()
  return source
}

func w9() {
  let (queue, gate, pairs) = (startLoop(), Gate(), Pairs())
  let sources = (0..<Pairs.count).map { pair in
    watch(pairs.descriptor(pair), queue) { _ in if pairs.ready(pair) { gate.open() } }
  }
  pairs.race(50_000) { gate.wait() }
  withExtendedLifetime(sources) {}
}

func w11() {
  let (queue, gate) = (startLoop(), Gate())
  guard let connections = race_echo_begin() else { return race_check(false, "no connections") }
  let sources = (0..<Int(race_connections())).map { index in
    let connection = connections[index]
    return watch(connection, queue) { source in
      guard !race_echo_serve(connection) else { return }
      source.cancel()
      if race_echo_closed() { gate.open() }
    }
  }
  race_echo_go()
  gate.wait()
  race_echo_report()
  withExtendedLifetime(sources) {}
}

func w12() {
  let queue = startLoop()
  var timers: [any DispatchSourceTimer] = []
  raceMemory(timers: 100_000) { count in
    var random = RandomDates()
    let base = DispatchTime.now()
    for _ in 0..<count { timers.append(makeTimer(queue, base + .nanoseconds(Int(random.far())))) }
  }
  // An idle queue has no thread.
  var queues: [DispatchQueue] = []
  raceMemory {
    queues.append(startLoop())
    queues.last?.sync {}
  }
  withExtendedLifetime((timers, queues)) {}
}

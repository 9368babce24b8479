// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore
import RunLoopThreads

/// Starts a loop that runs on its own thread until the process ends.
func startLoop() -> RunLoop {
  let loop = Handed<RunLoop>()
  onThread {
    let own = RunLoop.current
    own.add(RunLoop.Source {}, forMode: .default)
    own.perform { loop.give(own) }
    own.runUntilStopped()
  }
  return loop.take()
}

func w1() { posts(producers: 1) }
func w2() { posts(producers: 4) }

private func posts(producers: Int32) {
  let loop = startLoop()
  racePosts(producers: producers, race_scaled(2_000_000, 1000)) { count in
    if race_captures() {
      let object = Counted()
      for number in 0..<count { loop.perform { object.run(number) } }
    } else {
      for _ in 0..<count { loop.perform { race_run_one() } }
    }
  }
}

/// Two loops, with a closure for each that posts the other's.
private final class Table: @unchecked Sendable {
  // Sendable: the count belongs to the first loop's thread, and the rest is constant once the game has begun.
  private let here = startLoop()
  private let there = startLoop()
  private var hitHere: @Sendable () -> Void = {}
  private var hitThere: @Sendable () -> Void = {}
  private var left: Int64 = 0

  init() {
    hitHere = { [self] in
      race_run_one()
      left -= 1
      if left > 0 { there.perform(hitThere) }
    }
    hitThere = { [self] in here.perform(hitHere) }
  }

  func play(_ count: Int64) {
    left = count
    there.perform(hitThere)
  }
}

func w3() {
  let table = Table()
  raceTurns("round trip", race_scaled(30_000, 100)) { table.play($0) }
}

func w4() {
  let (loop, gate) = (startLoop(), Gate())
  let answer: @Sendable () -> Void = {
    race_run_one()
    gate.open()
  }
  raceTurns("post and wait", race_scaled(30_000, 100)) { count in
    for _ in 0..<count {
      loop.perform(answer)
      gate.wait()
    }
  }
  // The library's own way to wait, which detects deadlocks and threads that end.
  guard let thread = try? ResidentThread() else { return race_check(false, "no thread") }
  try? thread.performAndWait { race_place(0) }
  raceTurns("performAndWait", race_scaled(30_000, 100)) { count in
    for _ in 0..<count { try? thread.performAndWait { race_run_one() } }
  }
}

func w8() {
  let loop = RunLoop.current
  let passes = Passes(loop)
  let count = race_scaled(300_000, 1000)
  _ = passes.run(count / 20 + 1)
  race_report("pass", passes.run(count), "ns")
  for activity: RunLoop.Activity in [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit] {
    loop.add(RunLoop.Observer(activities: activity) { _, _ in }, forMode: .default)
  }
  race_report("pass, observed", passes.run(count), "ns")
}

/// A source that signals itself.
final class Passes: @unchecked Sendable {
  // Sendable: used by the loop's thread only.
  private let loop: RunLoop
  private var source: RunLoop.Source?
  private var left: Int64 = 0

  init(_ loop: RunLoop) {
    self.loop = loop
    let source = RunLoop.Source { [unowned(unsafe) self] in again() }
    loop.add(source, forMode: .default)
    self.source = source
  }

  private func again() {
    left -= 1
    if left > 0 { source?.signal() } else { loop.stop() }
  }

  /// Makes passes, and returns the nanoseconds of processor time for each.
  func run(_ count: Int64) -> Double {
    left = count
    source?.signal()
    let before = race_cpu()
    loop.runUntilStopped()
    return Double(race_cpu() - before) / Double(count)
  }
}

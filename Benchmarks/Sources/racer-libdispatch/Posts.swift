// SPDX-License-Identifier: Apache-2.0

import CRace
import Dispatch
import Race

func startLoop() -> DispatchQueue { DispatchQueue(label: "race") }

func w1() { posts(producers: 1) }
func w2() { posts(producers: 4) }

private func posts(producers: Int32) {
  let queue = startLoop()
  racePosts(producers: producers, race_scaled(1_000_000, 1000)) { count in
    if race_captures() {
      let object = Counted()
      for number in 0..<count { queue.async { object.run(number) } }
    } else {
      for _ in 0..<count { queue.async { race_run_one() } }
    }
  }
}

/// Two queues, with a closure for each that posts the other's.
private final class Table: @unchecked Sendable {
  // Sendable: the count belongs to the first queue, and the rest is constant once the game has begun.
  private let here = startLoop()
  private let there = startLoop()
  private var hitHere: @Sendable @convention(block) () -> Void = {}
  private var hitThere: @Sendable @convention(block) () -> Void = {}
  private var left: Int64 = 0

  init() {
    hitHere = { [self] in
      race_run_one()
      left -= 1
      if left > 0 { there.async(execute: hitThere) }
    }
    hitThere = { [self] in here.async(execute: hitHere) }
  }

  func play(_ count: Int64) {
    left = count
    there.async(execute: hitThere)
  }
}

func w3() {
  let table = Table()
  raceTurns("round trip", race_scaled(30_000, 100)) { table.play($0) }
}

func w4() {
  let (queue, gate) = (startLoop(), Gate())
  raceTurns("post and wait", race_scaled(30_000, 100)) { count in
    let answer: @Sendable @convention(block) () -> Void = {
      race_run_one()
      gate.open()
    }
    for _ in 0..<count {
      queue.async(execute: answer)
      gate.wait()
    }
  }
}

func w8() {
  let count = race_scaled(300_000, 1000)
  let passes = Passes()
  _ = passes.run(count / 20 + 1)
  race_report("pass", passes.run(count), "ns")
}

/// A closure that posts itself.
private final class Passes: @unchecked Sendable {
  // Sendable: the count belongs to the queue while it works.
  private let queue = startLoop()
  private let gate = Gate()
  private var again: @Sendable @convention(block) () -> Void = {}
  private var left: Int64 = 0

  init() {
    again = { [self] in
      left -= 1
      if left > 0 { queue.async(execute: again) } else { gate.open() }
    }
  }

  /// Makes passes, and returns the nanoseconds of processor time for each.
  func run(_ count: Int64) -> Double {
    left = count
    let before = race_cpu()
    queue.async(execute: again)
    gate.wait()
    return Double(race_cpu() - before) / Double(count)
  }
}

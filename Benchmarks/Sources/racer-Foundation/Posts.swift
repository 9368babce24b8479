// SPDX-License-Identifier: Apache-2.0

import CRace
import CoreFoundation
import Foundation
import Race

/// A loop that runs on its own thread until the process ends.
final class Loop: @unchecked Sendable {
  private let loop: RunLoop
  /// Needed to wake the loop, which `perform` does not do and Foundation has no call for.
  private let underlying: CFRunLoop

  private init() {
    loop = RunLoop.current
    underlying = CFRunLoopGetCurrent()
  }

  static func start() -> Loop {
    let handed = Handed<Loop>()
    onThread {
      let own = Loop()
      // A timer that is due in a hundred years keeps the loop alive.
      own.loop.add(Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }, forMode: .default)
      own.post { handed.give(own) }
      while true { _ = own.loop.run(mode: .default, before: .distantFuture) }
    }
    return handed.take()
  }

  func post(_ block: @escaping @Sendable () -> Void) {
    loop.perform(block)
    CFRunLoopWakeUp(underlying)
  }
}

func w1() { posts(producers: 1) }
func w2() { posts(producers: 4) }

private func posts(producers: Int32) {
  let loop = Loop.start()
  racePosts(producers: producers, race_scaled(100_000, 1000)) { count in
    if race_captures() {
      let object = Counted()
      for number in 0..<count { loop.post { object.run(number) } }
    } else {
      for _ in 0..<count { loop.post { race_run_one() } }
    }
  }
}

/// Two loops, with a block for each that posts the other's.
private final class Table: @unchecked Sendable {
  // Sendable: the count belongs to the first loop's thread, and the rest is constant once the game has begun.
  private let here = Loop.start()
  private let there = Loop.start()
  private var hitHere: @Sendable () -> Void = {}
  private var hitThere: @Sendable () -> Void = {}
  private var left: Int64 = 0

  init() {
    hitHere = { [self] in
      race_run_one()
      left -= 1
      if left > 0 { there.post(hitThere) }
    }
    hitThere = { [self] in here.post(hitHere) }
  }

  func play(_ count: Int64) {
    left = count
    there.post(hitThere)
  }
}

func w3() {
  let table = Table()
  raceTurns("round trip", race_scaled(30_000, 100)) { table.play($0) }
}

func w4() {
  let (loop, gate) = (Loop.start(), Gate())
  let answer: @Sendable () -> Void = {
    race_run_one()
    gate.open()
  }
  raceTurns("post and wait", race_scaled(30_000, 100)) { count in
    for _ in 0..<count {
      loop.post(answer)
      gate.wait()
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRace
import Race
import RunLoopCore

/// Both ways to wait: the loop's default, and sleeping immediately.
private let ways: [(name: String, waiting: RunLoop.Waiting)] = [
  ("RunLoopKit", .adaptive), ("RunLoopKit (sleep)", .sleep),
]

func l1() {
  for way in ways {
    RunLoop.waiting = way.waiting
    race_set_peer(way.name)
    let loop = startLoop()
    let over: @Sendable () -> Void = { race_wait_over() }
    raceWaits { loop.perform(over) }
  }
}

func l2() {
  for way in ways {
    RunLoop.waiting = way.waiting
    race_set_peer(way.name)
    var loops = (0..<100).map { _ in startLoop() }
    race_rest("100 idle loops")
    let beat = startLoop()
    beat.perform { beat.add(Timer(timeInterval: 0.001, repeats: true) { _ in }, forMode: .default) }
    loops.append(beat)
    race_rest("a timer of a millisecond beside them")
    race_check(loops.allSatisfy { $0.statistics.lookCount == 0 }, "a loop at rest has looked")
    for loop in loops { loop.stop() }
  }
}

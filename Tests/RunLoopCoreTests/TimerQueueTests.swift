// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The queue of timers")
struct TimerQueueTests {
  @Test(
    "against plain lists: random timers come, go, move, fire and change their tolerance", .rule(.r93, .r99f, .m8),
    arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let mode = ModeState("model")
    var timers: [Timer] = []
    var insertions: [Timer: UInt64] = [:]
    var insertion: UInt64 = 0
    for _ in 0..<800 {
      insertion += 1
      let tick = Tick(nanoseconds: Int64(random.below(50)))
      let timer = timers.randomElement(using: &random)
      switch (random.below(12), timer) {
      case (0..<4, _) where timers.count < 40:
        let tolerance = random.oneIn(3) ? Int64(random.below(30)) : 0
        let set = Tick(nanoseconds: Int64(insertion))
        let timer = Timer(tick: set, interval: random.oneIn(2) ? 0 : 20, tolerance: tolerance) { _ in }
        timer.tick = tick
        timer.slots.insert(mode, insertion: insertion)
        mode.insert(timer)
        timers.append(timer)
        insertions[timer] = insertion
      case (4..<6, let timer?):
        mode.remove(timer)
        timer.slots.remove(mode)
        timer.isFiring = false
        timers.removeAll { $0 == timer }
      case (6..<8, let timer?) where !timer.isFiring:
        timer.tick = tick
        timer.slots.renew(turn: { insertion }) { mode, slot in mode.timers.move(timer, by: slot) }
        insertions[timer] = insertion
      case (8..<10, let timer?):
        setTolerance(of: timer, to: random.oneIn(2) ? 0 : Int64(random.below(40) - 5), in: mode)
      case (10, let timer?) where !timer.isFiring:
        timer.isFiring = true
        mode.timers.beginFiring(timer)
      case (11, let timer?) where timer.isFiring:
        timer.isFiring = false
        timer.tick = tick
        timer.slots.renew(turn: { insertion }) { _, _ in }
        mode.timers.endFiring(timer)
        insertions[timer] = insertion
      default: break
      }
      mode.timers.checkInvariants()
      let waiting = timers.filter { !$0.isFiring }
      let isTolerant = timers.contains { $0.usableTolerance > 0 }
      #expect(mode.timers.hasTolerance == isTolerant)
      #expect(mode.timers.firstTick == waiting.map(\.tick).min() ?? .never)
      #expect((mode.timers.firstDeadline == nil) == timers.isEmpty)
      #expect(mode.timers.wakeTick == waiting.map(\.latestTick).min() ?? .never)
      var due: ContiguousArray<DeadlineHeap<Timer>.Due> = []
      defer { release(&due) }
      mode.timers.collect(dueAt: tick, into: &due)
      let expected = waiting.filter { $0.tick <= tick }
        .sorted { ($0.tick, insertions[$0] ?? 0) < ($1.tick, insertions[$1] ?? 0) }
      #expect(due.compactMap(\.member) == expected)
      #expect(mode.timerCount == timers.count)
      #expect(Set(mode.timers.all) == Set(timers) && mode.timers.all.count == timers.count)
    }
    for timer in timers { mode.remove(timer) }
    #expect(mode.timers.firstTick == .never && mode.timers.wakeTick == .never && !mode.timers.hasTolerance)
    mode.timers.checkInvariants()
  }

  @Test("a mode retains a timer during its call like a waiting one, and releases both at its end")
  func references() {
    let timers = {
      let mode = ModeState("references")
      let timers = (0..<2).map { index in
        let timer = Timer(tick: .never, interval: 0, tolerance: 0) { _ in }
        timer.slots.insert(mode, insertion: UInt64(index))
        mode.insert(timer)
        if index == 0 {
          timer.isFiring = true
          mode.timers.beginFiring(timer)
        }
        return WeakBox(timer)
      }
      #expect(timers.allSatisfy { $0.object != nil })
      return timers
    }()
    #expect(timers.allSatisfy { $0.object == nil })
  }

  private func setTolerance(of timer: Timer, to nanoseconds: Int64, in mode: ModeState) {
    let had = timer.usableTolerance > 0
    timer.storeTolerance(nanoseconds)
    let has = timer.usableTolerance > 0
    if had != has { mode.timers.countTolerant(has ? 1 : -1) }
    mode.timers.moveLatest(timer)
  }

  @Test("a loop's timers in several modes keep every heap in order", .rule(.r99b), arguments: 1...6)
  func loop(seed: UInt64) {
    onVirtualTime { time, loop in
      var random = SplitMix64(seed: seed)
      let modes: [RunLoop.Mode] = [.default, "A", "B", .common]
      let timers = (0..<12).map { index in
        Timer(at: random.below(30), every: index % 2 == 0 ? .milliseconds(7) : .seconds(3600)) { _ in }
      }
      for mode in modes where mode != .common { loop.keepAlive(mode) }
      for _ in 0..<400 {
        let timer = timers[random.below(timers.count)]
        let mode = modes[random.below(modes.count)]
        switch random.below(6) {
        case 0, 1: loop.add(timer, forMode: mode)
        case 2: loop.remove(timer, forMode: mode)
        case 3: timer.deadline = time.instant(time.milliseconds + random.below(30))
        case 4: timer.tolerance = random.oneIn(2) ? 0 : Double(random.below(9)) / 1000
        default: loop.run(mode: modes[random.below(3)], for: .milliseconds(random.below(9)))
        }
        expectOrder(in: loop, timers)
        loop.table.withLock { table in
          for mode in table.modes.values {
            precondition(mode.itemCount.load(ordering: .relaxed) == mode.timerCount + 1, "items are not counted")
          }
        }
      }
    }
  }

  @Test(
    "two threads that move their timers while the loop fires them keep every heap in order", .rule(.r99b, .r120),
    arguments: 1...3)
  func twoProducers(seed: UInt64) {
    let modes: [RunLoop.Mode] = [.default, "A", "B"]
    onVirtualTime { time, loop in
      for mode in modes { loop.keepAlive(mode) }
      let timers = (0..<16).map { index in
        Timer(at: index, every: index % 2 == 0 ? .milliseconds(7) : .seconds(3600)) { _ in }
      }
      let working = Atomic(2)
      let producers = (0..<2).map { producer in
        startThread {
          var random = SplitMix64(seed: seed * 2 + UInt64(producer))
          for step in 0..<1200 {
            let timer = timers[producer * 8 + random.below(8)]
            let mode = random.oneIn(4) ? .common : modes[random.below(modes.count)]
            switch random.below(6) {
            case 0, 1: loop.add(timer, forMode: mode)
            case 2: loop.remove(timer, forMode: mode)
            case 3, 4: timer.deadline = time.instant(random.below(60))
            default: timer.tolerance = random.oneIn(2) ? 0 : Double(random.below(9)) / 1000
            }
            if step % 8 == 0 { expectOrder(in: loop, timers) }
          }
          working.wrappingSubtract(1, ordering: .releasing)
        }
      }
      var turn = 0
      while working.load(ordering: .acquiring) > 0 {
        loop.run(mode: modes[turn % modes.count], for: .zero)
        time.advance(by: .microseconds(10))
        turn += 1
      }
      for producer in producers { producer.result() }
      expectOrder(in: loop, timers)
      for timer in timers { timer.invalidate() }
      loop.table.withLock { table in #expect(table.modes.values.allSatisfy { $0.timerCount == 0 }) }
    }
  }

  @Test("a timer ended by another thread at the end of its call is not retained, nor is its loop", .rule(.r104, .r120))
  func endedFromAfar() {
    let ending = Box<StartedThread<Void>?>(nil)
    let (timer, loop) = onVirtualTime { _, loop in
      let timer = {
        let timer = Timer(at: 5) { timer in
          // The other thread stays between closing the timer and removing it until the call is over.
          timer.lockItem()
          ending.value = startThread { timer.invalidate() }
          waitUntil { !timer.isValid }
        }
        loop.add(timer, forMode: .default)
        loop.keepAlive()
        loop.run(mode: .default, for: .milliseconds(10))
        timer.unlockItem()
        ending.value?.result()
        ending.value = nil
        return WeakBox(timer)
      }()
      expectOrder(in: loop, [])
      loop.table.withLock { table in #expect(table.modes.values.allSatisfy { $0.timers.all.count == 0 }) }
      return (timer, WeakBox(loop))
    }
    #expect(timer.object == nil)
    waitUntil { loop.object == nil }
  }

  private func expectOrder(in loop: RunLoop, _ timers: [Timer]) {
    loop.table.withLock { table in
      for mode in table.modes.values {
        mode.timers.checkInvariants()
        precondition(mode.timerCount == timers.count { $0.slots[mode] != nil }, "a timer is not counted")
      }
    }
  }
}

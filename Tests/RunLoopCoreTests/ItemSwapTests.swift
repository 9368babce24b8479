// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("An item that is replaced from another thread", .timeLimit(.minutes(20)))
struct ItemSwapTests {
  enum Leaving: String, CaseIterable {
    case removed, removedFromCommon, invalidated
  }

  @Test(
    "a run keeps going when its only timer leaves and another comes", .rule(.r28c, .r50), arguments: Leaving.allCases)
  func timer(leaving: Leaving) {
    let log = record { time, loop, log in
      let mode: RunLoop.Mode = leaving == .removedFromCommon ? .common : .default
      let old = Timer(at: 20) { _ in log.write("old") }
      loop.add(old, forMode: mode)
      time.at(.milliseconds(5)) {
        if leaving == .invalidated { old.invalidate() } else { loop.remove(old, forMode: mode) }
      }
      time.at(.milliseconds(7)) {
        let new = Timer(at: 30) { _ in time.stamp(log, "T") }
        log.write("\(loop.add(new, forMode: mode) as Bool)")
      }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "E BT BS BW true AW T30 X finished")
  }

  @Test("a run keeps going when its only descriptor source leaves and another comes", .rule(.r28c, .r50))
  func descriptor() throws {
    let pipes = (old: try RawPipe(), new: try RawPipe())
    let running = RunningLoop { loop, log in
      loop.observe(log)
      loop.watch(pipes.old.reading) { _, _ in log.write("old") }
    }
    let (loop, log) = (running.loop, running.log)
    loop.awaitSleep(.epoll)
    let old = loop.table.withLock { _ in loop.table.defaultMode.descriptors.values.first?.item }
    old?.invalidate()
    pipes.new.write()
    loop.watch(pipes.new.reading) { _, _ in
      log.write("D")
      loop.stop()
    }
    #expect(running.result() == "E BT BS BW AW D X stopped")
  }

  @Test("a worker whose only timer is replaced repeatedly keeps its run", .rule(.r28c, .r50), arguments: [false, true])
  func worker(invalidates: Bool) {
    let rounds = 200
    let result = onNewThread {
      let loop = RunLoop.current
      let present = Box<Timer?>(loop.after(.seconds(3600)) { _ in })
      let swapper = startThread {
        for round in 1...rounds {
          waitUntil { loop.isWaiting }
          let old = present.value
          if invalidates { old?.invalidate() } else if let old { loop.remove(old, forMode: .default) }
          let fired = Latch()
          let new = Timer(deadline: loop.now, interval: .seconds(3600)) { _ in fired.open() }
          guard loop.add(new, forMode: .default) else { return 0 }
          present.value = new
          fired.wait()
          if round == rounds { loop.stop() }
        }
        return rounds
      }
      let result = loop.runUntilStopped()
      return "\(swapper.result()) \(result)"
    }
    #expect(result == "\(rounds) stopped")
  }
}

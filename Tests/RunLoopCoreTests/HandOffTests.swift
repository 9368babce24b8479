// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Work that is handed over")
struct HandOffTests {
  @Test("all that was handed over before is performed by one source, in step 5", .rule(.m34))
  func oneSource() {
    let log = record { _, loop, log in
      for name in ["1", "2", "3"] { loop.handOff(name, log) }
      loop.run(log)
    }
    #expect(log == "E BT BS 1 2 3 BT BS BW AW X timedOut")
  }

  @Test("handed-over work counts as a handled source, and one run performs all of it", .rule(.m34, .r8))
  func handled() {
    let log = record(observing: nil) { _, loop, log in
      for name in ["1", "2", "3"] { loop.handOff(name, log) }
      for _ in 0..<2 {
        let result = loop.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true)
        log.write("\(result)")
      }
    }
    #expect(log == "1 2 3 handledSource timedOut")
  }

  @Test("the first hand-off leaves a source in its mode, which is not empty from then on", .rule(.m34, .r25, .r28))
  func keepsAlive() {
    let log = record(observing: nil) { time, loop, log in
      loop.run(log)
      loop.handOff("1", log)
      loop.run(log)
      loop.run(log)
      log.write("\(time.milliseconds) \(loop.itemCounts.sources)")
      loop.run(log, mode: "a")
      loop.handOff("2", log, inModes: ["a"])
      loop.run(log, mode: "a")
    }
    #expect(log == "finished 1 timedOut timedOut 2000 0 finished 2 timedOut")
  }

  @Test("work for the common modes keeps every mode alive that is or becomes common", .rule(.m34, .r101, .r102))
  func common() throws {
    let log = record(observing: nil) { _, loop, log in
      loop.handOff("1", log, inModes: [.common])
      loop.run(log)
      do { try loop.addCommonMode("late") } catch { log.write("\(error)") }
      loop.handOff("2", log, inModes: [.common])
      loop.run(log, mode: "late")
      loop.run(log, mode: "other")
    }
    #expect(log == "1 timedOut 2 timedOut finished")
  }

  @Test("work for several modes is performed once, in the first of them that runs", .rule(.m34))
  func once() {
    let log = record(observing: nil) { _, loop, log in
      loop.handOff("1", log, inModes: ["a", "b", .common])
      loop.handOff("2", log, inModes: ["b"])
      loop.handOff("3", log)
      loop.run(log, mode: "b", for: .zero)
      loop.run(log, mode: "a", for: .zero)
      loop.run(log, for: .zero)
    }
    #expect(log == "1 2 timedOut timedOut 3 timedOut")
  }

  @Test(
    "work handed over meanwhile signals the source again and is performed by the next pass", .rule(.m34, .r64, .r65))
  func meanwhile() {
    let log = record { _, loop, log in
      _ = loop.handOff(inModes: [.default]) {
        log.write("1")
        loop.handOff("2", log)
      }
      loop.run(log)
    }
    #expect(log == "E BT BS 1 BT BS 2 BT BS BW AW X timedOut")
  }

  @Test("a run nested in one part of the work performs the rest", .rule(.m34, .r67))
  func nested() {
    let log = record(observing: nil) { _, loop, log in
      _ = loop.handOff(inModes: [.default]) {
        log.write("1")
        loop.nest(log, for: .zero)
      }
      loop.handOff("2", log)
      loop.handOff("3", log)
      loop.run(log)
    }
    #expect(log == "1 [ 2 3 timedOut ] timedOut")
  }

  @Test("a stop between two parts of the work takes effect after the call-out", .rule(.m34, .r39))
  func stop() {
    let log = record { _, loop, log in
      _ = loop.handOff(inModes: [.default]) {
        log.write("1")
        loop.stop()
      }
      loop.handOff("2", log)
      loop.run(log)
    }
    #expect(log == "E BT BS 1 2 X stopped")
  }

  @Test("the source stands among the others by its order, and then by its first signal", .rule(.m34, .r62))
  func order() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled(order: 1) { log.write("later") }
      loop.signalled { log.write("before") }
      loop.handOff("1", log)
      loop.signalled { log.write("behind") }
      loop.signalled(order: -1) { log.write("first") }
      loop.handOff("2", log)
      loop.run(log, for: .zero)
    }
    #expect(log == "first before 1 2 behind later timedOut")
  }

  @Test("a run that returns after a source performs the hand-offs or another source, in their order", .rule(.m34, .r9))
  func oneSourceInEachRun() {
    let log = record(observing: nil) { _, loop, log in
      loop.handOff("1", log)
      loop.handOff("2", log)
      loop.signalled { log.write("S0") }
      for _ in 0..<3 {
        let result = loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
        log.write("\(result)")
      }
    }
    #expect(log == "1 2 handledSource S0 handledSource timedOut")
  }

  @Test("blocks and jobs precede handed-over work, whichever was posted first", .rule(.m34, .r6))
  func notInOrderWithBlocks() {
    let log = record(observing: nil) { _, loop, log in
      loop.handOff("1", log)
      loop.perform { log.write("B") }
      loop.run(log, for: .zero)
    }
    #expect(log == "B 1 timedOut")
  }

  @Test("a hand-off wakes a sleeping loop, and creates no descriptor", .rule(.m34, .r54, .m3))
  func wakes() {
    let running = RunningLoop { loop, log in
      loop.observe(log)
      loop.keepAlive()
    }
    running.loop.awaitSleep(.futex)
    _ = running.loop.handOff(inModes: [.common]) {
      running.log.write("1")
      running.loop.stop()
    }
    #expect(running.result() == "E BT BS BW AW BT BS 1 X stopped")
  }

  @Test("work that is left at the thread's end is dropped and counted, and rejected from then on", .rule(.m14, .m34))
  func dropped() {
    let log = Log()
    let loop = onVirtualTime { _, loop in
      loop.handOff("1", log)
      loop.handOff("2", log, inModes: ["a", .common])
      return loop
    }
    #expect(loop.statistics.droppedBlockCount == 2)
    #expect(!loop.handOff(inModes: [.default]) { log.write("3") })
    #expect(!loop.handOff(inModes: []) { log.write("4") })
    #expect(loop.statistics.rejectionCount == 2)
    #expect(log.text == "")
  }

  @Test("work that waits for another mode does not count for this one", .rule(.m34))
  func otherMode() {
    let passes = onVirtualTime { _, loop in
      for _ in 0..<100_000 { _ = loop.handOff(inModes: ["other"]) {} }
      loop.handOff("1", Log())
      loop.run(mode: .default, for: .zero)
      return loop.hasHandOff(loop.table.defaultMode) ? 0 : loop.blocks.lastSequence
    }
    #expect(passes == 100_001)
  }
}

extension RunLoop {
  fileprivate func handOff(_ name: String, _ log: Log, inModes modes: [Mode] = [.default]) {
    if !handOff(inModes: modes, block: { log.write(name) }) { log.write("rejected") }
  }
}

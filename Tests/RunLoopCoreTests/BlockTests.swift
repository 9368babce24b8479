// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Blocks", .timeLimit(.minutes(20)))
struct BlockTests {
  @Test("blocks run in the order in which they were posted, also those posted before the first run", .rule(.r53, .r60))
  func order() {
    let log = record { _, loop, log in
      for number in 1...3 { loop.perform { log.write("\(number)") } }
      loop.run(log)
    }
    #expect(log == "E BT BS 1 2 3 BW AW X timedOut")
  }

  @Test("blocks for the mode, for the common modes and for several modes keep their order", .rule(.r53, .r55))
  func mixedOrder() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: [.common]) { log.write("1") }
      loop.perform { log.write("2") }
      loop.perform(inModes: ["a", .default]) { log.write("3") }
      loop.perform(inModes: [.default, .common, .default]) { log.write("4") }
      loop.perform(inModes: [.common]) { log.write("5") }
      loop.perform { log.write("6") }
      loop.run(log)
    }
    #expect(log == "1 2 3 4 5 6 timedOut")
  }

  @Test("blocks for one mode keep their order, among each other and with those for several modes", .rule(.r53, .r55))
  func orderInOneMode() {
    let log = record(observing: nil) { _, loop, log in
      let lists: [[RunLoop.Mode]] = [["a"], ["a", "b"], ["b"], ["a"], [.default], ["a", .default], ["b"]]
      for (number, modes) in lists.enumerated() {
        loop.perform(inModes: modes) { log.write("\(number)") }
      }
      loop.run(log, mode: "a")
      loop.perform(inModes: ["b"]) { log.write("7") }
      loop.run(log, mode: "b")
      loop.perform { log.write("8") }
      loop.run(log)
    }
    #expect(log == "0 1 3 5 timedOut 2 6 7 timedOut 4 8 timedOut")
  }

  @Test("blocks that one mode has run do not stay in others that never run", .rule(.r55))
  func nothingStays() {
    let left = onVirtualTime { _, loop in
      for _ in 0..<10 { loop.perform(inModes: ["b"]) {} }
      for _ in 0..<1000 {
        loop.perform(inModes: ["a", "b", "c", .common]) {}
        _ = loop.handOff(inModes: ["a", "b", "c", .common]) {}
      }
      loop.run(mode: "a", for: .zero)
      let modes = ["b", "c"].map { name in loop.table.withLock { $0.mode(RunLoop.Mode(name)) } }
      return modes.flatMap { [$0.blocks.count, $0.handOffs.count] }
        + [loop.blocks.common.count, loop.blocks.commonHandOffs.count]
    }
    // At most twice as many as are waiting.
    #expect(left[0] >= 10 && left[0] <= 20)
    #expect(left.dropFirst().allSatisfy { $0 == 0 }, "\(left)")
  }

  @Test("a block for several modes runs once, in the first of them that runs", .rule(.r55))
  func once() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: ["a", "b", .common]) { log.write("B") }
      loop.run(log, mode: "b")
      loop.run(log, mode: "a")
      loop.run(log)
    }
    #expect(log == "B timedOut finished finished")
  }

  @Test("which modes are common is asked when the block could run", .rule(.r55))
  func commonAtRunTime() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: [.common]) { log.write("B") }
      loop.keepAlive("a")
      loop.run(log, mode: "a", for: .zero)
      try? loop.addCommonMode("a")
      loop.run(log, mode: "a", for: .zero)
    }
    #expect(log == "timedOut B timedOut")
  }

  @Test(
    "a block that makes its mode common lets only the common-mode blocks behind it run at once",
    .rule(.r55, .r58))
  func commonDuringBatch() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: [.common]) { log.write("before") }
      loop.perform(inModes: ["a"]) {
        try? loop.addCommonMode("a")
        loop.perform(inModes: [.common]) { log.write("posted") }
        log.write("B")
      }
      loop.perform(inModes: [.common]) { log.write("behind") }
      loop.perform(inModes: ["a"]) { log.write("own") }
      loop.once(.beforeTimers, mode: "a") { log.write("BT") }
      loop.once(.beforeSources, mode: "a") { log.write("BS") }
      loop.keepAlive("a")
      loop.run(log, mode: "a", for: .zero)
    }
    #expect(log == "BT BS B behind own before posted timedOut")
  }

  @Test("a block for the common modes is content of each of them", .rule(.r55, .r25))
  func commonIsContent() {
    let log = record(observing: "a") { _, loop, log in
      try? loop.addCommonMode("a")
      loop.perform(inModes: [.common]) { log.write("B") }
      loop.run(log, mode: "a")
    }
    #expect(log == "E BT BS B BW AW X timedOut")
  }

  @Test("blocks of other modes wait in their order, before those that are posted meanwhile", .rule(.r57))
  func otherModes() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: ["a"]) { log.write("a1") }
      loop.perform {
        log.write("B")
        loop.perform(inModes: ["a"]) { log.write("a3") }
      }
      loop.perform(inModes: ["a"]) { log.write("a2") }
      loop.run(log)
      loop.run(log, mode: "a")
    }
    #expect(log == "B timedOut a1 a2 a3 timedOut")
  }

  @Test("a block of an observer before the wait runs without a sleep", .rule(.r58, .m1))
  func fromBeforeWaiting() {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.once(.beforeWaiting) { loop.perform { log.write("B") } }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW B BT BS BW AW X timedOut 1")
  }

  @Test(
    "a block of an observer before the blocks runs in the same pass", .rule(.r58),
    arguments: [RunLoop.Activity.entry, .beforeTimers, .beforeSources])
  func fromTop(activity: RunLoop.Activity) {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.once(activity) { loop.perform { log.write("B") } }
      loop.run(log)
    }
    #expect(log == "E BT BS B BW AW X timedOut")
  }

  @Test("a block of a source runs in the same pass, before the timers", .rule(.r58))
  func fromSource() {
    let log = record { _, loop, log in
      loop.signalled { loop.perform { log.write("B") } }
      loop.after(.zero) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS B T BT BS BW AW X timedOut")
  }

  @Test("a block of an observer after the wait runs behind the timers", .rule(.r58))
  func fromAfterWaiting() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.once(.afterWaiting) { loop.perform { log.write("B") } }
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T B BT BS BW AW X timedOut")
  }

  @Test("a block of a port's message runs in the same pass", .rule(.r58))
  func fromPort() {
    let log = record { _, loop, log in
      loop.port(messages: 1) { loop.perform { log.write("B") } }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW B BT BS BW AW X timedOut")
  }

  @Test("a block of a block at the end of a pass runs at the top of the next", .rule(.r58))
  func fromLastBlock() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.after(.milliseconds(5)) { _ in
        loop.perform {
          log.write("B1")
          loop.perform { log.write("B2") }
        }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW B1 BT BS B2 BW AW X timedOut")
  }

  @Test("a block that posts itself repeatedly does not keep the timers from firing", .rule(.r58, .m1))
  func forever() {
    let log = record(observing: nil) { time, loop, log in
      let post = Box<(@Sendable () -> Void)?>(nil)
      post.value = {
        time.advance(by: .milliseconds(1))
        if let again = post.value { loop.perform(again) }
      }
      loop.perform { post.value?() }
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        post.value = nil
      }
      loop.run(log)
    }
    #expect(log == "T finished")
  }

  @Test("a nested run does not see the blocks behind the one that it is nested in", .rule(.r59, .r109))
  func invisible() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform {
        log.write("1")
        loop.nest(log)
      }
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 [ finished ] 2 timedOut")
  }

  @Test("a nested run sees the blocks that were posted since", .rule(.r59))
  func visible() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform {
        log.write("1")
        loop.perform { log.write("3") }
        loop.nest(log, for: .seconds(1))
      }
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 [ 3 timedOut ] 2 timedOut")
  }

  @Test("a nested run of another mode does not see its blocks of the same batch", .rule(.r57, .r59))
  func invisibleInOtherMode() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: ["a"]) { log.write("a1") }
      loop.perform {
        loop.nest(log, mode: "a")
        loop.perform(inModes: ["a"]) { log.write("a3") }
        loop.nest(log, mode: "a", for: .seconds(1))
      }
      loop.perform(inModes: ["a"]) { log.write("a2") }
      loop.run(log)
      loop.run(log, mode: "a")
    }
    #expect(log == "[ finished ] [ a3 timedOut ] timedOut a1 a2 timedOut")
  }

  @Test("a run nested in a timer sees every block", .rule(.r59))
  func visibleInTimer() {
    let log = record(observing: nil) { _, loop, log in
      loop.after(.milliseconds(5)) { _ in
        loop.perform { log.write("B") }
        loop.nest(log)
      }
      loop.run(log)
    }
    #expect(log == "[ B timedOut ] finished")
  }

  @Test("blocks that several threads post all run, each thread's in order", .rule(.r53, .r60))
  func threads() {
    let isOrdered = onVirtualTime { _, loop in
      let log = Log()
      let threads = (0..<4).map { thread in
        startThread {
          for number in 100..<300 { loop.perform { log.write("\(thread):\(number)") } }
        }
      }
      for thread in threads { thread.result() }
      loop.run(mode: .default, for: .seconds(1))
      let entries = log.text.split(separator: " ")
      return (0..<4).allSatisfy { thread in
        entries.filter { $0.hasPrefix("\(thread):") } == (100..<300).map { "\(thread):\($0)" }
      }
    }
    #expect(isOrdered)
  }

  @Test("blocks that have not run when the thread ends are dropped and counted, each once", .rule(.r60, .r115, .m14))
  func dropped() {
    let log = Log()
    let loop = onVirtualTime { _, loop in
      let probe = Token(log)
      loop.perform { probe.touch() }
      loop.perform(inModes: ["a", "b", .common]) { log.write("B") }
      loop.perform(inModes: [.common]) { log.write("B") }
      loop.perform { log.write("B") }
      return loop
    }
    #expect(loop.statistics.droppedBlockCount == 4)
    #expect(log.text == "released")
  }
}

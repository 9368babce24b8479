// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import TestSupport
import Testing

@Suite("Notification queues: modes", .timeLimit(.minutes(20)))
struct NotificationQueueModeTests {
  // L17
  @Test("a notification queued for a mode that is not common is posted only in that mode", .rule(.m18))
  func customMode() {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("custom")
      rig.observeStages(mode: "custom")
      rig.enqueue("soon", modes: ["custom"])
      rig.enqueue("idle", .whenIdle, modes: ["custom"])
      rig.enqueue("default")
      rig.run()
      rig.run(mode: "custom")
    }
    #expect(text == "default timedOut E BT BS BW soon idle AW X timedOut")
  }

  @Test("no mode list and an empty one mean the default mode", arguments: [nil, []] as [[RunLoop.Mode]?])
  func noModes(modes: [RunLoop.Mode]?) {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("custom")
      rig.enqueue("a", modes: modes)
      rig.enqueue("b", .whenIdle, modes: modes)
      rig.run(mode: "custom")
      rig.run()
    }
    #expect(text == "timedOut a b timedOut")
  }

  @Test("the common pseudo-mode includes all common modes, even those that become common later")
  func commonModes() {
    let text = journal { rig in
      for mode: RunLoop.Mode in [.default, "early", "late", "other"] { rig.keepAlive(mode) }
      try? rig.loop.addCommonMode("early")
      rig.enqueue("a", modes: [.common])
      rig.run(mode: "other")
      rig.run(mode: "early")
      rig.enqueue("b", .whenIdle, modes: [.common])
      try? rig.loop.addCommonMode("late")
      rig.run(mode: "late")
      rig.enqueue("c", modes: [.common])
      rig.run()
    }
    #expect(text == "timedOut a timedOut b timedOut c timedOut")
  }

  @Test("a notification may name several modes, even twice, and is posted once")
  func severalModes() {
    let text = journal { rig in
      for mode: RunLoop.Mode in [.default, "a", "b"] { rig.keepAlive(mode) }
      rig.enqueue("x", modes: ["a", "b", "a", .common, .default])
      rig.run(mode: "b")
      for mode: RunLoop.Mode in [.default, "a", "b"] { rig.run(mode: mode) }
    }
    #expect(text == "x timedOut timedOut timedOut timedOut")
  }

  @Test("notifications waiting for another mode keep no order with others, and are posted in theirs")
  func orderOfModes() {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("a")
      for name in ["a1", "d1", "a2", "d2", "a3"] { rig.enqueue(name, modes: [name.hasPrefix("a") ? "a" : .default]) }
      rig.run()
      rig.run(mode: "a")
    }
    #expect(text == "d1 d2 timedOut a1 a2 a3 timedOut")
  }

  @Test("outside all runs, a notification to be posted at once is posted whatever its modes")
  func nowOutsideRuns() {
    let text = journal { rig in
      rig.enqueue("a", .now)
      rig.enqueue("b", .now, modes: [.common])
      rig.enqueue("c", .now, modes: ["custom"])
    }
    #expect(text == "a b c")
  }

  @Test("during a run, a notification to be posted at once is posted only if its modes include the running one")
  func nowInARun() {
    let text = journal { rig in
      rig.keepAlive("custom")
      rig.keepAlive()
      rig.signal(mode: "custom") {
        rig.enqueue("a", .now)
        rig.enqueue("b", .now, modes: [.default, "custom"])
        rig.enqueue("c", .now, modes: [.common])
        rig.enqueue("d", .now, modes: [])
      }
      rig.run(mode: "custom")
      rig.signal { for modes in [[.common], nil] as [[RunLoop.Mode]?] { rig.enqueue("e", .now, modes: modes) } }
      rig.run()
    }
    #expect(text == "b timedOut e timedOut")
  }

  @Test("the queue has an observer in the loop only for modes in which notifications wait")
  func observers() {
    let text = journal { rig in
      let modes: [RunLoop.Mode] = [.default, "a", "b"]
      for mode in modes { rig.keepAlive(mode) }
      let write = { rig.journal.write(modes.map { rig.isWatched($0) ? "1" : "0" }.joined()) }
      write()
      rig.enqueue("x", .now)
      write()
      rig.enqueue("x", modes: ["a"])
      rig.enqueue("y", .whenIdle)
      write()
      rig.run()
      write()
      rig.enqueue("z", modes: [.common])
      rig.enqueue("z", modes: [.default, "b"])
      write()
      rig.run(mode: "b")
      rig.run(mode: "a")
      write()
      rig.dequeue("z", on: .onName)
      rig.run()
      write()
    }
    #expect(text == "000 x 000 110 y timedOut 010 111 z timedOut x timedOut 100 timedOut 000")
  }

  @Test("an observer in the default and common modes stays in the default mode after leaving the common ones")
  func observerNamedTwice() {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("a")
      try? rig.loop.addCommonMode("a")
      rig.enqueue("common", modes: [.common])
      rig.enqueue("default")
      rig.run(mode: "a")
      rig.journal.write("\(rig.isWatched(.default)) \(rig.isWatched("a"))")
      rig.run()
    }
    #expect(text == "common timedOut true false default timedOut")
  }

  @Test("notifications waiting for another mode do not keep the loop from sleeping")
  func sleepsOn() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("x", modes: ["other"])
      rig.run(for: .seconds(100))
      rig.journal.write("\(rig.time.sleepCount)")
    }
    #expect(text == "E BT BS BW AW X timedOut 1")
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Notification queues: re-entrancy", .timeLimit(.minutes(20)))
struct NotificationQueueReentrancyTests {
  // L16
  @Test("an observer may queue what is posted soon: it follows in the next pass, without a wait between", .rule(.m18))
  func enqueueInHandler() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.on("a") {
        rig.enqueue("b")
        rig.on("b") { rig.enqueue("c", .whenIdle) }
      }
      rig.enqueue("a")
      rig.enqueue("z")
      rig.run(for: .seconds(9))
      rig.journal.write("\(rig.time.sleepCount)")
    }
    #expect(text == "E BT BS BW a z AW BT BS BW b c AW X timedOut 1")
  }

  @Test("a notification requeued by its own observer does not prolong the pass")
  func endless() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      @Sendable func again(_ turns: Int) {
        rig.on("a") {
          if turns < 3 { rig.enqueue("a") } else { rig.loop.stop() }
          again(turns + 1)
        }
      }
      again(1)
      rig.enqueue("a")
      rig.run()
    }
    #expect(text == "E BT BS BW a AW BT BS BW a AW BT BS BW a AW X stopped")
  }

  @Test("an observer may post at once, and dequeue or replace waiting notifications")
  func dequeueInHandler() {
    let text = journal { rig in
      rig.keepAlive()
      rig.on("a") {
        rig.enqueue("now", .now)
        rig.dequeue("b", on: .onName)
        rig.dequeue("i", on: .onName)
        rig.enqueue("c", on: .onName)
      }
      for name in ["a", "b", "c", "d"] { rig.enqueue(name) }
      rig.enqueue("i", .whenIdle)
      rig.run()
    }
    #expect(text == "a now d c timedOut")
  }

  @Test("if an observer releases the queue, nothing more is posted, and the rest is counted")
  func releaseInHandler() {
    let text = journal { rig in
      rig.keepAlive()
      let owner = Box<NotificationQueue?>(nil)
      owner.value = NotificationQueue(notificationCenter: rig.center)
      for name in ["a", "b", "c"] { owner.value?.enqueue(.named(name), postingStyle: .asap) }
      rig.enqueue("d")
      rig.on("a") { owner.value = nil }
      rig.run()
      rig.journal.write("\(rig.loop.statistics.droppedNotificationCount)")
    }
    #expect(text == "a d timedOut 2")
  }

  @Test("a sender's release may enqueue and dequeue")
  func releaseQueues() {
    let text = journal { rig in
      rig.keepAlive()
      for _ in 0..<100 { rig.enqueue("x", modes: ["elsewhere"]) }
      rig.enqueue(
        "a",
        from: Token {
          rig.enqueue("b")
          rig.dequeue("x", on: .onName)
        })
      rig.dequeue("a", on: .onName)
      rig.run()
    }
    #expect(text == "b timedOut")
  }

  @Test(
    "notifications queued by an observer before the wait are posted before the loop sleeps",
    arguments: [Int.min, 0, Int.max], [NotificationQueue.PostingStyle.asap, .whenIdle])
  func queuedBeforeWaiting(order: Int, style: NotificationQueue.PostingStyle) {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      // With the queue's observer before it, at its stage, or absent.
      rig.enqueue("first")
      rig.once(.beforeWaiting, order: order) { rig.enqueue("a", style) }
      rig.run()
      rig.once(.beforeWaiting, order: order) { rig.enqueue("b", style) }
      rig.run()
    }
    let first =
      order == Int.max ? "BW first AW BT BS BW a AW X timedOut" : "BW first a AW X timedOut"
    #expect(text == "E BT BS \(first) E BT BS BW AW BT BS BW b AW X timedOut")
  }

  @Test("notifications queued by a run nested in an observer before the wait are posted before the loop sleeps")
  func queuedInNestedRun() {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("inner")
      rig.observeStages()
      rig.once(.beforeWaiting) {
        rig.after(1, mode: "inner") { rig.enqueue("a") }
        rig.run(mode: "inner", for: .milliseconds(2))
      }
      rig.run()
    }
    #expect(text == "E BT BS BW timedOut AW BT BS BW a AW X timedOut")
  }

  @Test("a run nested in a notification's observer posts queued notifications in order, and sleeps")
  func nestedInHandler() {
    let text = journal { rig in
      rig.keepAlive()
      rig.on("a") {
        rig.after(3) { rig.enqueue("late") }
        rig.enqueue("c")
        rig.journal.write("[")
        rig.run(for: .milliseconds(5))
        rig.journal.write("]")
      }
      rig.enqueue("a")
      rig.enqueue("b")
      rig.enqueue("idle", .whenIdle)
      rig.run()
      rig.journal.write("\(rig.time.sleepCount)")
    }
    #expect(text == "a [ b c idle late timedOut ] timedOut 3")
  }

  @Test("a run of another mode nested in an observer posts only that mode's notifications")
  func nestedInAnotherMode() {
    let text = journal { rig in
      rig.keepAlive()
      rig.keepAlive("inner")
      rig.on("a") {
        rig.journal.write("[")
        rig.run(mode: "inner", for: .milliseconds(5))
        rig.journal.write("]")
      }
      rig.enqueue("a")
      rig.enqueue("x", modes: ["inner"])
      rig.enqueue("b")
      rig.enqueue("y", .whenIdle, modes: ["inner"])
      rig.enqueue("z", modes: ["inner", .default])
      rig.run()
    }
    #expect(text == "a [ x z y timedOut ] b timedOut")
  }

  @Test("an observer may end its thread, which drops the remaining notifications")
  func exitInHandler() {
    let journal = Log()
    let loop = Box<RunLoop?>(nil)
    let thread = Thread {
      loop.value = RunLoop.current
      let center = NotificationCenter()
      _ = center.addObserver(forName: nil, object: nil, queue: nil) { notification in
        journal.write(notification.name.rawValue)
        Thread.exit()
      }
      let queue = Unmanaged.passRetained(NotificationQueue(notificationCenter: center))
      for name in ["a", "b"] {
        queue._withUnsafeGuaranteedRef { $0.enqueue(.named(name), postingStyle: .asap) }
      }
      RunLoop.current.add(RunLoop.Source {}, forMode: .default)
      RunLoop.current.run(mode: .default, for: .seconds(9))
    }
    thread.start()
    #expect(throws: Never.self) { try thread.join() }
    #expect(journal.text == "a")
    #expect(loop.value?.statistics.droppedNotificationCount == 1)
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Notification queues: when they post", .timeLimit(.minutes(20)))
struct NotificationQueueTests {
  @Test("NotificationQueue means ours when Foundation is imported, with the same members and numbers")
  func names() {
    let queue: NotificationQueue = NotificationQueue(notificationCenter: NotificationCenter())
    let other: NSObject = queue
    #expect(type(of: queue) != Foundation.NotificationQueue.self && queue.isEqual(other) && queue.hash == other.hash)
    let modes: [RunLoop.Mode]? = nil
    queue.enqueue(.named("a"), postingStyle: .now)
    queue.enqueue(.named("a"), postingStyle: .now, coalesceMask: [.onName, .onSender], forModes: modes)
    queue.dequeueNotifications(matching: .named("a"), coalesceMask: .none)
    let styles: [NotificationQueue.PostingStyle] = [.whenIdle, .asap, .now]
    #expect(styles.map(\.rawValue) == [1, 2, 3])
    let masks: [NotificationQueue.NotificationCoalescing] = [.none, .onName, .onSender]
    #expect(masks.map(\.rawValue) == [0, 1, 2])
    func requireSendable(_: some Sendable) {}
    requireSendable(queue)
  }

  // L14
  @Test(
    "notifications are posted in the order in which they were queued", .rule(.m18),
    arguments: [
      NotificationQueue.PostingStyle.asap, .whenIdle,
    ])
  func order(style: NotificationQueue.PostingStyle) {
    let text = journal { rig in
      rig.keepAlive()
      for name in ["a", "b", "c", "d"] { rig.enqueue(name, style) }
      rig.run()
    }
    #expect(text == "a b c d timedOut")
  }

  // L15
  @Test("before the loop waits, soon-style notifications precede those for an idle loop", .rule(.m18))
  func styles() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      rig.enqueue("soon", .asap)
      rig.enqueue("now", .now)
      rig.run()
    }
    #expect(text == "now E BT BS BW soon idle AW X timedOut")
  }

  @Test("a notification queued by a call-out is posted before the loop waits again")
  func afterCallOut() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.after(5) {
        rig.journal.write("T\(rig.time.now.nanoseconds / 1_000_000)")
        rig.enqueue("a")
      }
      rig.run()
    }
    #expect(text == "E BT BS BW AW T5 BT BS BW a AW X timedOut")
  }

  @Test("several call-outs of one pass cause one notification")
  func coalescedInAPass() {
    let text = journal { rig in
      rig.keepAlive()
      for name in ["1", "2", "3"] {
        rig.after(5) {
          rig.journal.write(name)
          rig.queue.enqueue(.named("a"), postingStyle: .asap)
        }
      }
      rig.run()
    }
    #expect(text == "1 2 3 a timedOut")
  }

  @Test("a pass without a wait leaves queued notifications to the exit")
  func polling() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("soon")
      rig.enqueue("idle", .whenIdle)
      rig.run(for: .zero)
    }
    #expect(text == "E BT BS X soon timedOut")
  }

  @Test("a run kept alive only by a block is idle once the block has run")
  func blockOnly() {
    let text = journal { rig in
      rig.observeStages()
      rig.loop.perform {
        rig.enqueue("idle", .whenIdle)
        rig.enqueue("soon")
      }
      rig.run()
    }
    #expect(text == "E BT BS BW soon idle AW X timedOut")
  }

  @Test("a loop that never sleeps posts where it would have waited")
  func busy() {
    let text = journal { rig in
      rig.observeStages()
      @Sendable func work(_ turns: Int) {
        rig.journal.write("B")
        if turns == 1 { rig.enqueue("a") }
        if turns < 6 { rig.loop.perform { work(turns + 1) } }
      }
      rig.loop.perform { work(1) }
      rig.run()
    }
    #expect(text == "E BT BS B BW a AW B BT BS B BW AW B BT BS B BW AW B X finished")
  }

  @Test("a source that is always signalled does not starve the notification queue")
  func busySource() {
    let text = journal { rig in
      rig.observeStages()
      let turns = Log()
      let ready = Box<RunLoop.Source?>(nil)
      let source = RunLoop.Source {
        turns.write("x")
        rig.journal.write("S")
        switch turns.text.count / 2 {
        case 0:
          rig.enqueue("a")
          fallthrough
        case 1, 2: ready.value?.signal()
        default: ready.value?.invalidate()
        }
      }
      ready.value = source
      rig.loop.add(source, forMode: .default)
      source.signal()
      rig.run()
    }
    #expect(text == "E BT BS S BT BS S BT a BS S BT BS S X finished")
  }

  @Test("a queued notification does not keep the loop alive, and waits for a run")
  func keepsNothingAlive() {
    let text = journal { rig in
      rig.enqueue("soon")
      rig.enqueue("idle", .whenIdle)
      rig.run()
      rig.keepAlive()
      rig.run()
    }
    #expect(text == "finished soon idle timedOut")
  }

  @Test("while something is ready, the loop is not idle")
  func notIdle() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      rig.after(0) { rig.journal.write("T") }
      rig.run()
    }
    #expect(text == "E BT BS BW AW T BT BS BW idle AW X timedOut")
  }

  @Test("while a message or a descriptor is ready, the loop is not idle")
  func notIdleForSources() {
    let message = journal { rig in
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      let port = Port { _, _ in rig.journal.write("P") }
      rig.loop.add(port, forMode: .default)
      try? port.send(Port.Message())
      rig.run()
    }
    #expect(message == "E BT BS BW AW P BT BS BW idle AW X timedOut")
    let descriptor = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      let pipe = Pipe()
      rig.loop.add(readable: pipe, in: .default) { source in
        rig.journal.write("D")
        source.invalidate()
      }
      try? pipe.fileHandleForWriting.write(contentsOf: Data([1]))
      rig.run()
    }
    #expect(descriptor == "E BT BS BW AW D BT BS BW idle AW X timedOut")
  }

  @Test("a loop woken for one more pass is not idle before that pass")
  func notIdleWhenWoken() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      rig.once(.beforeSources) { rig.loop.wakeUp() }
      rig.run()
    }
    #expect(text == "E BT BS BW AW BT BS BW idle AW X timedOut")
  }

  @Test("a run stopped before it waits is not idle")
  func stopped() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("idle", .whenIdle)
      rig.once(.beforeSources) { rig.loop.stop() }
      rig.run()
      rig.run()
    }
    #expect(text == "E BT BS BW AW X stopped E BT BS BW idle AW X timedOut")
  }

  @Test("each notification for an idle loop is posted only if the loop is still idle")
  func idleAgain() {
    let text = journal { rig in
      rig.keepAlive()
      rig.observeStages()
      rig.enqueue("i1", .whenIdle)
      rig.enqueue("i2", .whenIdle)
      rig.enqueue("i3", .whenIdle)
      rig.on("i1") { rig.loop.perform { rig.journal.write("B") } }
      rig.on("i2") { rig.enqueue("soon") }
      rig.run()
    }
    #expect(text == "E BT BS BW i1 AW B BT BS BW i2 AW BT BS BW soon i3 AW X timedOut")
  }
}

extension RunLoop {
  /// Watches the reading end of a pipe.
  fileprivate func add(
    readable pipe: Pipe, in mode: Mode, _ body: @escaping @Sendable (DescriptorSource) -> Void
  ) {
    let descriptor = pipe.fileHandleForReading.fileDescriptor
    let source = DescriptorSource(descriptor: descriptor, events: .readable) { source, _ in body(source) }
    do {
      try add(source, forMode: mode)
    } catch {
      Issue.record("the pipe cannot be watched: \(error)")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import Testing
import TestSupport

@Suite("Notification queues: coalescing", .timeLimit(.minutes(20)))
struct NotificationQueueCoalescingTests {
  /// Queues the given notifications, and returns what a run posts.
  private func posted(_ body: @escaping @Sendable (NotificationRig) -> Void) -> String {
    journal { rig in
      body(rig)
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(1))
    }
  }

  private final class Plain: Sendable {}

  @Test("coalescing by name keeps the last notification, at the end")
  func byName() {
    let text = posted { rig in
      rig.enqueue("a", from: NSObject(), on: .onName)
      rig.enqueue("b", on: .onName)
      rig.enqueue("a", on: .onName)
    }
    #expect(text == "b a")
  }

  @Test("coalescing by sender compares the object, whatever the name")
  func bySender() {
    let text = posted { rig in
      let (one, other) = (NSObject(), NSObject())
      rig.enqueue("a", from: one, on: .onSender)
      rig.enqueue("b", from: other, on: .onSender)
      rig.enqueue("c", from: one, on: .onSender)
      rig.enqueue("d", on: .onSender)
      rig.enqueue("e", on: .onSender)
    }
    #expect(text == "b c e")
  }

  @Test("coalescing by both requires the same name and sender, as does the short spelling")
  func byBoth() {
    let text = posted { rig in
      let (one, other) = (NSObject(), NSObject())
      rig.queue.enqueue(.named("a", from: one), postingStyle: .asap)
      rig.queue.enqueue(.named("a", from: other), postingStyle: .asap)
      rig.queue.enqueue(.named("b", from: one), postingStyle: .asap)
      rig.queue.enqueue(.named("a", from: one), postingStyle: .asap)
    }
    #expect(text == "a b a")
  }

  @Test("without coalescing every notification is posted")
  func byNothing() {
    let text = posted { rig in
      rig.enqueue("a")
      rig.enqueue("a")
      rig.enqueue("a", .asap, on: .init(rawValue: 4))
    }
    #expect(text == "a a a")
  }

  @Test("the coalescing mask of the new notification counts")
  func maskOfTheNew() {
    let text = posted { rig in
      rig.enqueue("a", on: .onName)
      rig.enqueue("a")
      rig.enqueue("a", on: .onName)
      rig.enqueue("a")
    }
    #expect(text == "a a")
  }

  @Test("the contents of the last coalesced notification are posted")
  func contents() {
    let text = journal { rig in
      rig.keepAlive()
      let center = NotificationCenter()
      _ = center.addObserver(forName: nil, object: nil, queue: nil) { notification in
        rig.journal.write(notification.userInfo?["text"] as? String ?? "none")
      }
      let queue = NotificationQueue(notificationCenter: center)
      for text in ["first", "second", "third"] {
        let notification = Notification(name: Notification.Name("a"), object: nil, userInfo: ["text": text])
        queue.enqueue(notification, postingStyle: .asap)
      }
      rig.run()
      withExtendedLifetime(queue) {}
    }
    #expect(text == "third timedOut")
  }

  @Test("any object can be a sender, NSObject or not, also in an optional")
  func plainObjects() {
    let text = posted { rig in
      let sender = Plain()
      let optional: Plain? = sender
      rig.enqueue("a", from: sender, on: .onSender)
      rig.enqueue("b", from: optional, on: .onSender)
      rig.enqueue("c", from: optional as Any, on: .onSender)
    }
    #expect(text == "c")
  }

  @Test("a value has no identity, and never matches as a sender")
  func values() {
    let text = posted { rig in
      rig.enqueue("a", from: "sender", on: .onSender)
      rig.enqueue("b", from: "sender", on: .onSender)
      rig.enqueue("b", from: "sender", on: [.onName, .onSender])
    }
    #expect(text == "a b b")
  }

  @Test("a notification with one posting style can replace one with another")
  func acrossStyles() {
    let text = posted { rig in
      rig.enqueue("a", .whenIdle, on: .onName)
      rig.enqueue("b", .whenIdle)
      rig.enqueue("a", .asap, on: .onName)
      rig.enqueue("c", .asap)
      rig.enqueue("c", .whenIdle, on: .onName)
    }
    #expect(text == "a b c")
  }

  @Test("a notification posted at once replaces queued ones, whatever their modes")
  func now() {
    let text = posted { rig in
      rig.enqueue("a")
      rig.enqueue("a", modes: ["elsewhere"])
      rig.enqueue("b")
      rig.enqueue("a", .now, on: .onName)
      rig.enqueue("a", .now, on: .onName)
    }
    #expect(text == "a a b")
  }

  @Test("queues of one thread do not coalesce with each other, and post in their common order")
  func severalQueues() {
    let text = posted { rig in
      let second = NotificationQueue(notificationCenter: rig.center)
      let elsewhere = NotificationCenter()
      rig.hear(elsewhere, prefix: "other:")
      let third = NotificationQueue(notificationCenter: elsewhere)
      second.enqueue(.named("a"), postingStyle: .asap)
      rig.enqueue("a", .asap, on: .onName)
      third.enqueue(.named("a"), postingStyle: .asap)
      third.enqueue(.named("idle"), postingStyle: .whenIdle)
      second.enqueue(.named("b"), postingStyle: .asap)
      second.dequeueNotifications(matching: .named("idle"), coalesceMask: .onName)
      rig.loop.perform { withExtendedLifetime((second, third)) {} }
      rig.keepAlive()
      rig.loop.run(mode: .default, for: .seconds(1))
    }
    #expect(text == "a a other:a b other:idle")
  }

  @Test("notifications dequeued by name, sender or both are not posted; without criteria nothing is dequeued")
  func dequeue() {
    let text = posted { rig in
      let (one, other) = (NSObject(), NSObject())
      for name in ["a", "b", "c"] {
        rig.enqueue(name, from: one)
        rig.enqueue(name, .whenIdle, from: other)
      }
      rig.dequeue("a", from: nil, on: .onName)
      rig.dequeue("none", from: one, on: [.onName, .onSender])
      rig.dequeue("b", from: other, on: [.onName, .onSender])
      rig.dequeue("c", from: other, on: .none)
      rig.dequeue("whatever", from: one, on: .onSender)
    }
    #expect(text == "c")
  }

  @Test("a dequeued notification is released at once")
  func released() {
    let text = journal { rig in
      rig.enqueue("a", from: Token(rig.journal, "one"), on: .onName)
      rig.enqueue("a", from: Token(rig.journal, "two"), on: .onName)
      rig.dequeue("a", on: .onName)
      rig.journal.write("dequeued")
    }
    #expect(text == "one two dequeued")
  }
}

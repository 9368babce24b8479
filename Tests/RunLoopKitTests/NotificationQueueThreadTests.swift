// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Notification queues: threads", .timeLimit(.minutes(20)))
struct NotificationQueueThreadTests {
  @Test("every thread has one default notification queue, regardless of the code that created the thread")
  func defaultQueues() {
    let here = onNewThread { (NotificationQueue.default, NotificationQueue.default) }
    #expect(here.0 === here.1)
    let there = onNewThread { NotificationQueue.default }
    #expect(here.0 !== there)
  }

  @Test("the default queue posts to the default center on its own thread")
  func defaultCenter() {
    let name = Notification.Name("NotificationQueueThreadTests.defaultCenter")
    let journal = Log()
    let threads = onVirtualTime { _, loop in
      let heard = Box<UInt?>(nil)
      let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
        heard.value = pthread_self()
        journal.write("posted")
      }
      defer { NotificationCenter.default.removeObserver(token) }
      NotificationQueue.default.enqueue(Notification(name: name), postingStyle: .asap)
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      return (heard.value, pthread_self())
    }
    #expect(journal.text == "posted" && threads.0 == threads.1)
  }

  @Test("a thread's end drops and counts queued notifications, and releases the queue and its contents")
  func threadEnd() {
    let journal = Log()
    let (loop, queue) = onVirtualTime { _, loop in
      let center = NotificationCenter()
      _ = center.addObserver(forName: nil, object: nil, queue: nil) { [held = Token(journal, "center")] _ in
        withExtendedLifetime(held) { journal.write("posted") }
      }
      let kept = NotificationQueue(notificationCenter: NotificationCenter())
      kept.enqueue(.named("a", from: Token(journal, "kept's")), postingStyle: .asap)
      let own = NotificationQueue(notificationCenter: center)
      // The thread retains it until its end.
      loop.perform(inModes: ["never"]) { withExtendedLifetime(own) {} }
      own.enqueue(.named("a", from: Token(journal, "own")), postingStyle: .whenIdle)
      own.enqueue(.named("b"), postingStyle: .asap, coalesceMask: [], forModes: [.common, "x"])
      NotificationQueue.default.enqueue(.named("c", from: Token(journal, "default")), postingStyle: .asap)
      return (loop, kept)
    }
    #expect(Set(journal.text.split(separator: " ")) == ["center", "kept's", "own", "default"])
    #expect(loop.statistics.droppedNotificationCount == 4)
    withExtendedLifetime(queue) {}
  }

  @Test("the default notification queue ends with its thread")
  func defaultQueueEnds() {
    let queue = onNewThread {
      NotificationQueue.default.enqueue(.named("a"), postingStyle: .asap)
      return WeakBox(NotificationQueue.default)
    }
    #expect(queue.object == nil)
  }

  @Test("releasing a queue drops and counts its notifications")
  func released() {
    let text = journal { rig in
      rig.keepAlive()
      do {
        let queue = NotificationQueue(notificationCenter: rig.center)
        queue.enqueue(.named("a", from: Token(rig.journal, "released")), postingStyle: .asap)
      }
      rig.run()
      rig.journal.write("\(rig.loop.statistics.droppedNotificationCount) \(rig.isWatched(.default))")
    }
    #expect(text == "released timedOut 1 false")
  }

  @Test("a queue released by another thread is emptied on its own")
  func releasedElsewhere() {
    let text = journal { rig in
      rig.keepAlive()
      let owner = Box<NotificationQueue?>(nil)
      owner.value = NotificationQueue(notificationCenter: rig.center)
      owner.value?.enqueue(.named("a", from: Token(rig.journal, "released")), postingStyle: .asap)
      owner.value?.enqueue(.named("b"), postingStyle: .whenIdle)
      onNewThread { owner.value = nil }
      rig.journal.write("gone")
      rig.run()
      rig.journal.write("\(rig.loop.statistics.droppedNotificationCount)")
    }
    #expect(text == "gone released timedOut 2")
  }

  @Test("a queue belongs to the first thread that uses it, not to its creator")
  func bindsAtFirstUse() {
    let journal = Log()
    let center = NotificationCenter()
    _ = center.addObserver(forName: nil, object: nil, queue: nil) { journal.write($0.name.rawValue) }
    let made = NotificationQueue(notificationCenter: center)
    onVirtualTime { _, loop in
      made.enqueue(.named("a"), postingStyle: .asap)
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
    }
    #expect(journal.text == "a")
  }

  @Test(
    "calls by another thread on a queue are rejected and counted, and have no effect", .rule(.m21))
  func foreignThread() {
    let text = journal { rig in
      rig.keepAlive()
      rig.enqueue("mine")
      onNewThread {
        for style in [NotificationQueue.PostingStyle.whenIdle, .asap, .now] { rig.enqueue("theirs", style) }
        rig.enqueue("mine", .asap, on: .onName)
        rig.dequeue("mine", on: .onName)
      }
      rig.run()
      rig.journal.write("\(rig.loop.statistics.rejectionCount)")
    }
    #expect(text == "mine timedOut 5")
  }

  @Test("another thread may request its own default queue while this thread retains its own")
  func foreignDefault() {
    let text = journal { rig in
      let mine = NotificationQueue.default
      onNewThread {
        mine.enqueue(.named("a"), postingStyle: .asap)
        NotificationQueue.default.enqueue(.named("a"), postingStyle: .asap)
      }
      rig.journal.write("\(rig.loop.statistics.rejectionCount)")
    }
    #expect(text == "1")
  }

  @Test("a queue whose thread has ended may be used by another one")
  func rebinds() {
    let journal = Log()
    let center = NotificationCenter()
    _ = center.addObserver(forName: nil, object: nil, queue: nil) { journal.write($0.name.rawValue) }
    let queue = NotificationQueue(notificationCenter: center)
    for name in ["a", "b"] {
      onVirtualTime { _, loop in
        queue.enqueue(.named(name), postingStyle: .asap)
        loop.add(RunLoop.Source {}, forMode: .default)
        loop.run(mode: .default, for: .seconds(1))
        queue.enqueue(.named("late"), postingStyle: .asap)
      }
    }
    #expect(journal.text == "a b")
  }

  @Test("in a thread's last destructors nothing is enqueued, but immediate posts still happen")
  func lateDestructors() {
    let journal = Log()
    let center = NotificationCenter()
    _ = center.addObserver(forName: nil, object: nil, queue: nil) { journal.write($0.name.rawValue) }
    let queue = NotificationQueue(notificationCenter: center)
    let loop = onVirtualTime { _, loop in
      let last = Token {
        queue.enqueue(.named("late"), postingStyle: .asap)
        queue.enqueue(.named("now"), postingStyle: .now)
        queue.dequeueNotifications(matching: .named("late"), coalesceMask: .onName)
        NotificationQueue.default.enqueue(.named("late"), postingStyle: .whenIdle)
      }
      queue.enqueue(.named("a", from: last), postingStyle: .asap)
      return loop
    }
    #expect(journal.text == "now")
    #expect(loop.statistics.droppedNotificationCount == 1)
  }

  @Test("of two threads that use a queue at once, one owns it, and nothing of the other's is posted")
  func contention() {
    for _ in 0..<50 {
      let center = NotificationCenter()
      let journal = Log()
      _ = center.addObserver(forName: nil, object: nil, queue: nil) { journal.write($0.name.rawValue) }
      let queue = NotificationQueue(notificationCenter: center)
      let threads = ["a", "b"].map { name in
        startThread {
          for _ in 0..<20 {
            queue.enqueue(.named(name), postingStyle: .asap, coalesceMask: [], forModes: nil)
            queue.dequeueNotifications(matching: .named("none"), coalesceMask: .onName)
          }
          RunLoop.current.add(RunLoop.Source {}, forMode: .default)
          RunLoop.current.run(mode: .default, for: .zero)
        }
      }
      for thread in threads { thread.result() }
      // All of the first thread's, and then those that the second queued after the first had ended.
      let names = journal.text.split(separator: " ")
      #expect(names.prefix(20).allSatisfy { $0 == names.first } && names.count >= 20)
      #expect(names.dropFirst(20).allSatisfy { $0 != names.first })
    }
  }
}

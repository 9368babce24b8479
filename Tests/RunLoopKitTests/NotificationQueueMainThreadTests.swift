// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

/// The assertions of Foundation's public tests about notification queues, on the main thread's default queue.
final class NotificationQueueMainThreadTests: XCTestCase {
  private let heard = Log()
  private var tokens: [any NSObjectProtocol] = []
  private var timers: [Timer] = []

  override func tearDown() {
    for token in tokens { NotificationCenter.default.removeObserver(token) }
    tokens = []
  }

  /// Creates a notification that no other code posts, from a new sender, with an observer.
  private func heardNotification(
    _ name: String = #function, as entry: String = "heard", center: NotificationCenter = .default
  ) -> Notification {
    let notification = Notification(name: Notification.Name("main thread: \(name)"), object: NSObject())
    let token = center.addObserver(forName: notification.name, object: notification.object, queue: nil) {
      [heard] _ in heard.write(entry)
    }
    tokens.append(token)
    return notification
  }

  /// Runs the main loop until a timer has fired after the queue's turn.
  ///
  /// A timer that is due when the loop begins would keep it from being idle.
  private func runUntilTimer() {
    let (loop, heard, firings) = (RunLoop.current, heard, Counter())
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { timer in
      guard heard.count(of: "heard") + heard.count(of: "first") > 0 || firings.add() == 10_000 else { return }
      timer.invalidate()
      loop.stop()
    }
    timers.append(timer)
    XCTAssertEqual(loop.runUntilStopped(), .stopped)
  }

  func testTheDefaultQueueIsOnePerThread() {
    let mine = NotificationQueue.default
    XCTAssertEqual(mine, NotificationQueue.default)
    let (theirs, again) = onNewThread { (NotificationQueue.default, NotificationQueue.default) }
    XCTAssertEqual(theirs, again)
    XCTAssertNotEqual(theirs, mine)
  }

  func testWhatIsPostedAtOnceIsHeardWhenTheCallReturns() {
    let notification = heardNotification()
    NotificationQueue.default.enqueue(notification, postingStyle: .now)
    XCTAssertEqual(heard.text, "heard")
  }

  func testWhatIsPostedAtOnceIsNotCoalescedWithWhatWasPosted() {
    let notification = heardNotification()
    for _ in 0..<3 { NotificationQueue.default.enqueue(notification, postingStyle: .now) }
    XCTAssertEqual(heard.text, "heard heard heard")
  }

  func testAQueuePostsToItsOwnCenter() {
    let center = NotificationCenter()
    let notification = heardNotification(center: center)
    NotificationQueue(notificationCenter: center).enqueue(notification, postingStyle: .now)
    XCTAssertEqual(heard.text, "heard")
  }

  func testWhatIsPostedAtOnceAsksForTheModeThatTheLoopIsIn() {
    let name = heardNotification().name
    let (loop, heard) = (RunLoop.current, heard)
    tokens.append(
      NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in heard.write("any") })
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      let queue = NotificationQueue.default
      let notification = Notification(name: name)
      queue.enqueue(notification, postingStyle: .now, coalesceMask: [], forModes: loop.currentMode.map { [$0] })
      queue.enqueue(notification, postingStyle: .now)
      // A loop is never in the common pseudo-mode itself.
      queue.enqueue(notification, postingStyle: .now, coalesceMask: [], forModes: [.common])
      loop.stop()
    }
    loop.add(timer, forMode: .default)
    loop.runUntilStopped()
    XCTAssertEqual(heard.text, "any any")
  }

  func testWhatIsPostedSoonIsHeardInTheNextRun() {
    let notification = heardNotification()
    NotificationQueue.default.enqueue(notification, postingStyle: .asap)
    XCTAssertEqual(heard.text, "")
    runUntilTimer()
    XCTAssertEqual(heard.text, "heard")
  }

  func testTheSameNotificationQueuedThreeTimesIsHeardOnce() {
    let notification = heardNotification()
    for _ in 0..<3 { NotificationQueue.default.enqueue(notification, postingStyle: .asap) }
    runUntilTimer()
    XCTAssertEqual(heard.text, "heard")
  }

  func testOfNotificationsThatMatchByNameOrBySenderTheLastAreHeard() {
    let first = heardNotification("one name", as: "first")
    let second = heardNotification("one name", as: "second")
    let queue = NotificationQueue.default
    for (notification, mask) in [
      (first, .onName), (second, .onSender), (first, .onName), (second, .onName), (first, .onSender),
    ] as [(Notification, NotificationQueue.NotificationCoalescing)] {
      queue.enqueue(notification, postingStyle: .asap, coalesceMask: mask, forModes: nil)
    }
    runUntilTimer()
    XCTAssertEqual(heard.text, "second first")
  }

  func testWhatWaitsForAnIdleLoopIsHeardWhenTheLoopWaits() {
    let notification = heardNotification()
    NotificationQueue.default.enqueue(notification, postingStyle: .whenIdle)
    XCTAssertEqual(heard.text, "")
    runUntilTimer()
    XCTAssertEqual(heard.text, "heard")
  }

  func testWhatWaitsForAnIdleLoopComesAfterTheMainDispatchQueue() {
    let notification = heardNotification()
    let heard = heard
    DispatchQueue.main.async { heard.write("main queue") }
    NotificationQueue.default.enqueue(notification, postingStyle: .whenIdle)
    runUntilTimer()
    XCTAssertEqual(heard.text, "main queue heard")
  }

  func testAQueueThatItsThreadMadeEndsWithTheThread() {
    let ended = Log()
    final class Watched: NotificationQueue, @unchecked Sendable {
      // Sendable: the witness is Sendable and constant.
      private let witness: Token
      init(_ journal: Log) {
        witness = Token(journal, "ended")
        super.init(notificationCenter: NotificationCenter())
      }
    }
    let thread = Thread { Watched(ended).enqueue(.named("a"), postingStyle: .asap) }
    thread.start()
    XCTAssertNoThrow(try thread.join())
    XCTAssertEqual(ended.text, "ended")
  }
}

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import RunLoopKit
import XCTest

// Written like any program's tests: only the import says that the timers and loops are ours. XCTest waits by running
// Foundation's loop.

/// Long enough that only a hung test reaches it.
private let limit: TimeInterval = 600

/// XCTest waits for events of our loop.
final class PlainWaitTests: XCTestCase {
  // M32
  func testATimerFulfills() {
    let fired = expectation(description: "fired")
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in fired.fulfill() }
    wait(for: [fired], timeout: limit)
  }

  // M32
  func testARepeatingTimerFulfillsAsOftenAsItIsWaitedFor() {
    let fired = expectation(description: "fired three times")
    fired.expectedFulfillmentCount = 3
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { timer in
      fired.fulfill()
      if fired.expectedFulfillmentCount == 3 { timer.tolerance = 0 }
    }
    fired.assertForOverFulfill = false
    wait(for: [fired], timeout: limit)
    timer.invalidate()
  }

  // M32
  func testABlockFulfills() {
    let done = expectation(description: "done")
    RunLoop.current.perform { done.fulfill() }
    wait(for: [done], timeout: limit)
  }

  // M3, M32
  func testABlockOfAnotherThreadFulfills() {
    let done = expectation(description: "done")
    DispatchQueue.global().async { RunLoop.main.perform { done.fulfill() } }
    wait(for: [done], timeout: limit)
  }

  // M32
  func testExpectationsAreFulfilledInOrder() {
    let first = expectation(description: "first")
    let second = expectation(description: "second")
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      first.fulfill()
      RunLoop.current.perform { second.fulfill() }
    }
    wait(for: [first, second], timeout: limit, enforceOrder: true)
  }

  // M32
  func testAWaitInACallOutOfOursIsServedToo() {
    let outer = expectation(description: "outer")
    let inner = expectation(description: "inner")
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in inner.fulfill() }
      XCTAssertEqual(XCTWaiter().wait(for: [inner], timeout: limit), .completed)
      outer.fulfill()
    }
    wait(for: [outer], timeout: limit)
  }

  // M32
  func testAnInvertedExpectationSeesWhatItForbids() {
    let forbidden = XCTestExpectation(description: "forbidden")
    forbidden.isInverted = true
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in forbidden.fulfill() }
    XCTAssertEqual(XCTWaiter().wait(for: [forbidden], timeout: limit), .invertedFulfillment)
  }

  // M32
  func testAnInvertedExpectationHoldsForATimerThatIsInvalid() {
    let forbidden = XCTestExpectation(description: "forbidden")
    forbidden.isInverted = true
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in forbidden.fulfill() }
    timer.invalidate()
    XCTAssertEqual(XCTWaiter().wait(for: [forbidden], timeout: 0.01), .completed)
  }
}

/// Expectations that observe something by themselves.
final class PlainObservingTests: XCTestCase {
  // M32
  func testAPredicateSeesWhatATimerDoes() {
    nonisolated(unsafe) var isDone = false
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in isDone = true }
    let predicate = NSPredicate { _, _ in isDone }
    wait(for: [expectation(for: predicate, evaluatedWith: NSObject())], timeout: limit)
  }

  // M32
  func testANotificationThatATimerPosts() {
    let name = Notification.Name("PlainTests.posted")
    let posted = expectation(forNotification: name, object: nil)
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      NotificationCenter.default.post(name: name, object: nil)
    }
    wait(for: [posted], timeout: limit)
  }

  // M32
  func testANotificationOfAQueue() {
    let name = Notification.Name("PlainTests.queued")
    let posted = expectation(forNotification: name, object: nil)
    NotificationQueue.default.enqueue(Notification(name: name), postingStyle: .whenIdle)
    wait(for: [posted], timeout: limit)
  }
}

/// Waits other than XCTest's synchronous ones.
///
/// Sendable: it has no state. With Swift 6.2, XCTest's `fulfillment` leaves the main actor with the test.
final class PlainAsyncTests: XCTestCase, @unchecked Sendable {
  // M32
  @MainActor
  func testFulfillmentIsAwaited() async {
    let fired = expectation(description: "fired")
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in fired.fulfill() }
    await fulfillment(of: [fired], timeout: limit)
  }

  // M32
  @MainActor
  func testTheMainQueueAndOursTakeTurns() async {
    let last = expectation(description: "last")
    DispatchQueue.main.async {
      RunLoop.main.perform {
        DispatchQueue.main.async { RunLoop.main.perform { last.fulfill() } }
      }
    }
    await fulfillment(of: [last], timeout: limit)
  }

  // M32
  func testAPerformOnTheMainThread() throws {
    let done = expectation(description: "done")
    DispatchQueue.global().async {
      do { try Thread.main.perform { done.fulfill() } } catch { XCTFail("\(error)") }
    }
    wait(for: [done], timeout: limit)
  }

  // M32
  func testAProcessIsWaitedForWhileTimersFire() throws {
    nonisolated(unsafe) var fired = 0
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in fired += 1 }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/cat")
    let input = Pipe()
    process.standardInput = input
    try process.run()
    // The child ends when a timer of ours has fired.
    Timer.scheduledTimer(withTimeInterval: 0.003, repeats: false) { _ in
      try? input.fileHandleForWriting.close()
    }
    process.waitUntilExit()
    timer.invalidate()
    XCTAssertEqual(process.terminationStatus, 0)
    XCTAssertGreaterThan(fired, 0)
  }
}

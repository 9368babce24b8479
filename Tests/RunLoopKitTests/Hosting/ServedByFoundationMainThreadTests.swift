// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

/// On the real main thread, whose loop of Foundation's the waits of XCTest run.
final class ServedByFoundationMainThreadTests: XCTestCase {
  // M28
  func testATimerOfOursFiresWhileExpectationsAreWaitedFor() throws {
    let fired = expectation(description: "The timer of ours has fired.")
    let posted = expectation(description: "What was posted to our loop has run.")
    let timer = Timer(timeInterval: 0.001, repeats: false) { _ in fired.fulfill() }
    RunLoop.main.add(timer, forMode: .common)
    try RunLoop.main.servedByCoreFoundation {
      DispatchQueue.global().async { RunLoop.main.perform { posted.fulfill() } }
      wait(for: [fired, posted], timeout: 60)
    }
    XCTAssertFalse(timer.isValid)
  }

  // M28, R111
  func testTheMainQueueIsDrainedOnceAndInOrder() throws {
    let numbers = Box<[Int]>([])
    let isDone = Box(false)
    try RunLoop.main.servedByCoreFoundation {
      DispatchQueue.global().async {
        for number in 0..<500 {
          DispatchQueue.main.async { numbers.value.append(number) }
          // Now one loop has a reason to look, and now the other.
          if number.isMultiple(of: 50) { RunLoop.main.perform {} }
        }
        DispatchQueue.main.async { isDone.value = true }
      }
      while !isDone.value { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
    }
    XCTAssertEqual(numbers.value, Array(0..<500))
    // The queue is our loop's alone again.
    DispatchQueue.main.async { isDone.value = false }
    while isDone.value { RunLoop.main.run(mode: .default, before: .distantFuture) }
  }
}

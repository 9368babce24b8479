// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

/// These tests need the real main thread, whose Foundation loop is run by XCTest's waits.
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
          // Alternates between the loops that have a reason to check the queue.
          if number.isMultiple(of: 50) { RunLoop.main.perform {} }
        }
        DispatchQueue.main.async { isDone.value = true }
      }
      while !isDone.value { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
    }
    XCTAssertEqual(numbers.value, Array(0..<500))
    // Only this package's loop serves the queue again.
    DispatchQueue.main.async { isDone.value = false }
    while isDone.value { RunLoop.main.run(mode: .default, before: .distantFuture) }
  }
}

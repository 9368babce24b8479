// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import RunLoopThreads
import XCTest
import TestSupport

// The assertions of Foundation's public tests about threads, on the real main thread, on which synchronous XCTest
// methods run.
final class MainThreadThreadTests: XCTestCase {
  func testTheCurrentThreadIsTheMainOne() {
    let (first, second) = (Thread.current, Thread.current)
    XCTAssertEqual(first, second)
    XCTAssertEqual(first, Thread.mainThread)
    XCTAssertTrue(first === Thread.main)
  }

  func testTheMainThreadKnowsItselfAndOthersDoNot() throws {
    XCTAssertTrue(Thread.isMainThread)
    let (main, current) = (Thread.mainThread, Thread.current)
    XCTAssertTrue(main.isMainThread && current.isMainThread && current.isExecuting)
    XCTAssertTrue(current.isEqual(main))
    let condition = NSCondition()
    let isOther = Box<Bool?>(nil)
    condition.lock()
    let thread = Thread {
      condition.withLock {
        isOther.value = !Thread.isMainThread && Thread.mainThread != Thread.current
        condition.broadcast()
      }
    }
    thread.start()
    while isOther.value == nil { XCTAssertTrue(condition.wait(until: Date(timeIntervalSinceNow: 600))) }
    condition.unlock()
    XCTAssertEqual(isOther.value, true)
    try thread.join()
  }

  func testAThreadThatIsStartedRuns() throws {
    let condition = NSCondition()
    let hasRun = Box(false)
    condition.lock()
    let thread = Thread {
      condition.withLock {
        hasRun.value = true
        condition.broadcast()
      }
    }
    XCTAssertEqual(thread.qualityOfService, .default)
    thread.start()
    while !hasRun.value { XCTAssertTrue(condition.wait(until: Date(timeIntervalSinceNow: 600))) }
    condition.unlock()
    try thread.join()
    XCTAssertTrue(thread.isFinished)
  }

  // Foundation's tests expect the first name to be the process's, and reject names longer than 15 bytes. Here, a
  // thread has no name until one is set, keeps it in full, and passes to the kernel what fits.
  func testTheMainThreadHasAName() throws {
    let before = Thread.current.name
    let kernelsName = System.name(ofThread: getpid())
    defer {
      Thread.current.name = before ?? kernelsName
      Thread.current.name = before
    }
    XCTAssertNil(before)
    Thread.current.name = "mainThread"
    XCTAssertEqual(Thread.mainThread.name, "mainThread")
    XCTAssertEqual(System.name(ofThread: getpid()), "mainThread")
    Thread.current.name = "12345678901234567890"
    XCTAssertEqual(Thread.current.name, "12345678901234567890")
    XCTAssertEqual(System.name(ofThread: getpid()), "123456789012345")
  }

  func testTheStackIsTold() {
    XCTAssertTrue((1...128).contains(Thread.callStackSymbols.count))
    XCTAssertTrue((1...128).contains(Thread.callStackReturnAddresses.count))
  }

  // Foundation's tests are skipped on Linux. A test cannot limit how late a sleep ends.
  func testASleepDoesNotEndEarly() {
    for seconds in [0.001, 0.02] {
      let (begun, before) = (Date(), Tick.monotonicNow)
      Thread.sleep(forTimeInterval: seconds)
      XCTAssertGreaterThanOrEqual(Tick.monotonicNow, before + Int64(saturatingSeconds: seconds))
      let date = Date(timeIntervalSinceNow: seconds)
      Thread.sleep(until: date)
      XCTAssertGreaterThanOrEqual(Date(), date)
      XCTAssertGreaterThan(date, begun)
    }
  }

  func testTheMainThreadHasADictionary() {
    let dictionary = Thread.main.threadDictionary
    dictionary["key"] = "value"
    XCTAssertEqual(Thread.current.threadDictionary["key"] as? String, "value")
    dictionary.removeObject(forKey: "key")
  }
}

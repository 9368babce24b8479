// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import XCTest
import TestSupport

// The assertions of Foundation's own tests of run loops and timers, reworded, on the real main thread, on which
// synchronous test methods run. Each test has its own timer, so that none is delayed by another.

/// The assertions of Foundation's run loop tests.
final class FoundationOwnRunLoopTests: XCTestCase {
  private let loop = RunLoop.current

  /// Runs the loop until the timer, which stops it, has ended; other work on the main queue may end a turn too.
  private func runToTheEnd(of timer: Timer) {
    while timer.isValid { XCTAssertTrue(loop.run(mode: .default, before: .distantFuture)) }
  }

  func testTheModesHaveCoreFoundationsNames() {
    XCTAssertEqual(RunLoop.Mode.common.rawValue, "kCFRunLoopCommonModes")
    XCTAssertEqual(RunLoop.Mode.default.rawValue, "kCFRunLoopDefaultMode")
    XCTAssertEqual(RunLoop.Mode(rawValue: "kCFRunLoopDefaultMode"), .default)
    XCTAssertNotEqual(RunLoop.Mode.default, .common)
  }

  // R113
  func testTheMainThreadsLoopIsTheMainLoopAndEachIsOneObject() {
    XCTAssertTrue(RunLoop.main === RunLoop.main)
    XCTAssertTrue(RunLoop.current === RunLoop.current)
    XCTAssertEqual(RunLoop.main, RunLoop.current)
    XCTAssertTrue(RunLoop.main.isEqual(RunLoop.current))
    XCTAssertEqual(RunLoop.main.hash, RunLoop.current.hash)
    XCTAssertFalse(loop.isEqual(onNewThread { RunLoop.current }))
    XCTAssertFalse(loop.isEqual(nil))
    XCTAssertFalse(loop.isEqual(loop.hash))
  }

  // R31, R121
  func testARunBeforeADateFiresTheTimersInItsModeAndIsTrue() {
    let log = Log()
    let loop = loop
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: false) { _ in
      log.write(loop.currentMode?.rawValue ?? "none")
      loop.stop()
    }
    loop.add(timer, forMode: .default)
    runToTheEnd(of: timer)
    XCTAssertEqual(log.text, "kCFRunLoopDefaultMode")
    XCTAssertNil(loop.currentMode)
  }

  // R123
  func testTheLimitDateIsTheDateOfTheFirstTimer() throws {
    let (before, begin) = (Date(timeIntervalSinceNow: 100), Tick.monotonicNow)
    let timer = Timer.scheduledTimer(withTimeInterval: 100, repeats: false) { _ in }
    defer { timer.invalidate() }
    loop.add(timer, forMode: .default)
    let limit = try XCTUnwrap(loop.limitDate(forMode: .default))
    XCTAssertEqual(limit, timer.fireDate)
    XCTAssertEqual(loop.nextFireDate(forMode: .default), limit)
    // The dates were read one after another, with a clock that is not set meanwhile. Comparing two clocks is only as
    // accurate as the time that it takes, and dates are rounded.
    let error = Double(Tick.monotonicNow.nanoseconds - begin.nanoseconds) / 1e9 + 0.000_001
    XCTAssertGreaterThanOrEqual(limit.timeIntervalSince(before), -error)
    XCTAssertLessThanOrEqual(limit, Date(timeIntervalSinceNow: 100))
  }

  // R12, R122
  func testARunUntilNowReturns() {
    loop.run(until: Date())
    loop.run(until: .distantPast)
  }

  // R101
  func testATimerOfTheCommonModesFiresInTheDefaultMode() {
    let log = Log()
    let loop = loop
    let timer = Timer(timeInterval: 0.01, repeats: false) { _ in
      log.write("T")
      loop.stop()
    }
    loop.add(timer, forMode: .common)
    runToTheEnd(of: timer)
    XCTAssertEqual(log.text, "T")
    XCTAssertFalse(loop.contains(timer, forMode: .common))
  }

  // R8, R121
  func testARunBeforeADateServesTheMainQueueAgainAndAgainAndThenATimer() {
    let log = Log()
    let loop = loop
    for turn in 1...2 {
      DispatchQueue.main.async { log.write("Q\(turn)") }
      while log.count(of: "Q\(turn)") == 0 { XCTAssertTrue(loop.run(mode: .default, before: .distantFuture)) }
      XCTAssertEqual(log.count(of: "Q\(turn)"), 1)
    }
    // No work of the queue is left that could end this run before its timer.
    let timer = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: false) { _ in
      log.write("T")
      loop.stop()
    }
    loop.add(timer, forMode: .default)
    runToTheEnd(of: timer)
    XCTAssertEqual(log.text, "Q1 Q2 T")
  }

  // R27, R122
  func testARunUntilADateWaitsForTheDateThoughTheMainLoopHasNothingScheduled() {
    let date = Date(timeIntervalSinceNow: 0.02)
    loop.run(until: date)
    XCTAssertGreaterThanOrEqual(Date(), date)
  }
}

/// The assertions of Foundation's timer tests.
final class FoundationOwnTimerTests: XCTestCase {
  private let loop = RunLoop.current

  private func runToTheEnd(of timer: Timer) {
    while timer.isValid { loop.run(mode: .default, before: timer.fireDate) }
  }

  // R95
  func testATimerHasTheDateAndTheIntervalThatItWasMadeWith() {
    let date = Date()
    let once = Timer(fire: date, interval: 0.3, repeats: false) { _ in }
    XCTAssertEqual(once.fireDate, date)
    XCTAssertEqual(once.timeInterval, 0)
    XCTAssertTrue(once.isValid)
    let repeating = Timer(fire: date, interval: 0.3, repeats: true) { _ in }
    XCTAssertEqual(repeating.fireDate, date)
    XCTAssertEqual(repeating.timeInterval, 0.3)
    XCTAssertTrue(repeating.isValid)
    XCTAssertTrue(once.isEqual(once))
    XCTAssertFalse(once.isEqual(repeating))
    XCTAssertEqual(once.hash, once.hashValue)
  }

  // R96, R99b
  func testATimerThatFiresOnceFiresOnceThoughItWasAddedTwiceAndInvalidatesItself() {
    let log = Log()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: false) { timer in
      log.write("T")
      timer.invalidate()
    }
    loop.add(timer, forMode: .default)
    runToTheEnd(of: timer)
    loop.run(until: Date(timeIntervalSinceNow: 0.02))
    XCTAssertEqual(log.text, "T")
  }

  // R97
  func testATimerRepeatsAtItsIntervalUntilItIsInvalidated() {
    let log = Log()
    let last = Box(Date())
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: true) { timer in
      XCTAssertEqual(timer.timeInterval, 0.01)
      // Later than the previous date by a whole number of intervals on the wall clock.
      let intervals = timer.fireDate.timeIntervalSince(last.value) / 0.01
      if log.count(of: "T") > 0 { XCTAssertEqual(intervals, intervals.rounded(), accuracy: 0.1) }
      XCTAssertGreaterThanOrEqual(Date(), timer.fireDate)
      last.value = timer.fireDate
      log.write("T")
      if log.count(of: "T") == 3 { timer.invalidate() }
    }
    loop.add(timer, forMode: .default)
    runToTheEnd(of: timer)
    XCTAssertEqual(log.text, "T T T")
  }

  // R99c
  func testARepeatingTimerThatIsInvalidatedInItsCallOutDoesNotFireAgain() {
    let log = Log()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: true) { timer in
      log.write("\(timer.isValid)")
      timer.invalidate()
      log.write("\(timer.isValid)")
    }
    loop.add(timer, forMode: .default)
    runToTheEnd(of: timer)
    loop.run(until: Date(timeIntervalSinceNow: 0.03))
    XCTAssertEqual(log.text, "true false")
  }
}

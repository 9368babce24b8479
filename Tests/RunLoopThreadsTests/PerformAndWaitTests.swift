// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Waiting for work", .timeLimit(.minutes(20)))
struct PerformAndWaitTests {
  private enum Refused: Error, Equatable { case because(Int) }

  @Test("performAndWait returns the value, and makes earlier effects visible")
  func value() throws {
    let thread = Thread.running()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    #expect(id != RunLoop.callingThreadID)
    #expect(try thread.performAndWait { [1, 2, 3] } == [1, 2, 3])
    try thread.stopLoop()
  }

  @Test("an error thrown by the work passes through")
  func error() throws {
    let thread = Thread.running()
    #expect(throws: Refused.because(7)) {
      try thread.performAndWait { () throws(Refused) -> Int in throw .because(7) }
    }
    #expect(throws: Refused.because(8)) { try thread.performAndWait { throw Refused.because(8) } }
    #expect(try thread.performAndWait { true })
    try thread.stopLoop()
  }

  @Test("on the thread itself work runs immediately, ahead of waiting work")
  func inline() throws {
    let log = Log()
    let thread = Thread.running()
    try thread.performAndWait {
      log.write("a")
      try thread.perform { log.write("c") }
      try thread.performAndWait { log.write("b") }
      #expect(throws: Refused.because(1)) { try thread.performAndWait { throw Refused.because(1) } }
    }
    try thread.performAndWait {}
    #expect(log.text == "a b c")
    try thread.stopLoop()
  }

  @Test("on a thread that does not run its loop, work posted by the thread itself runs at once, in no mode")
  func inlineWithoutLoop() throws {
    let log = Log()
    let thread = Thread.started {
      try? Thread.current.performAndWait(inModes: []) { log.write("ran") }
    }
    try thread.join()
    #expect(log.text == "ran")
  }

  @Test("the waiter is notified if the thread ended before the work ran")
  func dropped() throws {
    let thread = Thread {
      // Does not run its loop.
      waitUntil { RunLoop.current.inbox.mayHaveEntries }
    }
    thread.name = "short"
    thread.start()
    #expect(throws: ThreadError.dropped(thread: "thread \"short\"")) { try thread.performAndWait {} }
    try thread.join()
  }

  @Test("the waiter is notified of a timeout, and the work no longer runs")
  func timeout() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.running()
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    for timeout in [Duration.seconds(-1), .zero, .milliseconds(1)] {
      #expect(throws: ThreadError.timedOut) {
        try thread.performAndWait(timeout: timeout) { log.write("ran") }
      }
    }
    hold.released.open()
    try thread.stopLoop()
    #expect(log.text == "")
  }

  @Test("work that has begun continues after its waiter's timeout")
  func timeoutOfBegun() throws {
    var timeout: Duration = .milliseconds(5)
    // Repeats with more time, until the work begins within the timeout.
    while try !begins(within: timeout) { timeout *= 2 }
  }

  /// Returns whether work that cannot end in time has begun; if so, it continues.
  private func begins(within timeout: Duration) throws -> Bool {
    let log = Log()
    let hold = Hold()
    let thread = Thread.running()
    #expect(throws: ThreadError.timedOut) {
      try thread.performAndWait(timeout: timeout) {
        hold.occupy()
        log.write("ran")
      }
    }
    let hasBegun = hold.begun.isOpen
    hold.released.open()
    try thread.stopLoop()
    #expect(log.text == (hasBegun ? "ran" : ""))
    return hasBegun
  }

  @Test("work that finishes in time returns its value", arguments: [Duration.seconds(60), .seconds(Int64.max)])
  func inTime(_ timeout: Duration) throws {
    let thread = Thread.running()
    #expect(try thread.performAndWait(timeout: timeout) { 5 } == 5)
    try thread.stopLoop()
  }

  @Test("many callers may wait for one thread")
  func many() throws {
    let thread = Thread.running()
    let sum = Box(0)
    let waiters = (1...4).map { number in
      Thread.started {
        for _ in 0..<100 {
          guard let value = try? thread.performAndWait({ number }) else { continue }
          sum.update { $0 += value }
        }
      }
    }
    for waiter in waiters { try waiter.join() }
    #expect(sum.value == 1000)
    try thread.stopLoop()
  }
}

// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopKit
import RunLoopTesting
import Testing
import XCTest

// The example of the article "Testing code that waits", written as a program's own tests would be.

/// Calls an action once nothing has been reported for a while.
private final class Debouncer: Sendable {
  private let timer: Timer
  private let delay: Duration

  init(delay: Duration, on loop: RunLoop = .current, action: @escaping @Sendable () -> Void) {
    self.delay = delay
    // It repeats so that it stays valid, and is parked until something is reported.
    timer = loop.schedule(in: delay, repeating: delay) { timer in
      timer.park()
      action()
    }
    timer.park()
  }

  func report() { timer.move(after: delay) }

  deinit { timer.invalidate() }
}

@Suite("A debouncer on virtual time, with the umbrella")
struct PlainVirtualTimeTests {
  @Test("thirty seconds pass at once")
  func debounces() throws {
    try VirtualTime.onThisThread { time in
      let debouncer = Debouncer(delay: .seconds(30)) { time.log.write("saved") }
      debouncer.report()
      try time.advance(by: .seconds(29))
      #expect(time.log.count(of: "saved") == 0)

      try time.advance(by: .seconds(1))
      #expect(time.log.timedCallOuts == "T@30000 saved@30000")
    }
  }

  @Test("Foundation's spelling counts by the virtual time too")
  func foundation() throws {
    try VirtualTime.asMain { time in
      let timer = Timer.scheduledTimer(withTimeInterval: 60, repeats: true) { _ in time.log.write("minute") }
      #expect(timer.fireDate == Date(timeIntervalSinceReferenceDate: 60))
      RunLoop.main.run(until: Date(timeIntervalSinceReferenceDate: 150))
      #expect(time.log.timedCallOuts == "T@60000 minute@60000 T@120000 minute@120000")
      timer.invalidate()
    }
  }
}

final class PlainVirtualTimeXCTests: XCTestCase {
  func testThirtySecondsPassAtOnce() throws {
    try VirtualTime.asMain { time in
      let debouncer = Debouncer(delay: .seconds(30), on: .main) { time.log.write("saved") }
      debouncer.report()
      try time.advance(by: .seconds(29))
      XCTAssertEqual(time.log.count(of: "saved"), 0)

      try time.advance(by: .seconds(1))
      XCTAssertEqual(time.log.timedCallOuts, "T@30000 saved@30000")
    }
  }

  /// Foundation's main loop and ours serve each other in real time only.
  func testNeitherServesFoundationsMainLoopNorIsServedByIt() throws {
    let fired = expectation(description: "fired")
    let timer = Foundation.Timer(timeInterval: 0.001, repeats: false) { _ in fired.fulfill() }
    Foundation.RunLoop.main.add(timer, forMode: .default)
    try VirtualTime.asMain { time in
      try time.advance(by: .seconds(3600))
      XCTAssertTrue(timer.isValid)
      RunLoop.main.perform { time.log.write("block") }
      CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
      XCTAssertEqual(time.log.count(of: "block"), 0)
    }
    wait(for: [fired], timeout: 60)
  }
}

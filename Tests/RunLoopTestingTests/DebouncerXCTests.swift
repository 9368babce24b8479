// SPDX-License-Identifier: Apache-2.0

import RunLoopTesting
import XCTest

import class RunLoopCore.RunLoop

final class DebouncerXCTests: XCTestCase {
  /// Takes out what earlier tests have left in the main dispatch queue: the test's loop serves it too.
  override func setUp() { RunLoop.main.run(mode: .default, for: .zero) }

  func testItCallsItsActionOnce() throws {
    try VirtualTime.asMain { time in
      let debouncer = Debouncer(delay: .seconds(30), on: .main) { time.log.write("saved") }
      debouncer.report()
      try time.advance(by: .seconds(29))
      XCTAssertEqual(time.log.callOuts, "")
      try time.advance(by: .seconds(1))
      XCTAssertEqual(time.log.timedCallOuts, "T@30000 saved@30000")
    }
  }
}

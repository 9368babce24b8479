// SPDX-License-Identifier: Apache-2.0

import RunLoopTesting
import XCTest

import class RunLoopCore.RunLoop

final class DebouncerXCTests: XCTestCase {
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

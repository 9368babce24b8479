// SPDX-License-Identifier: Apache-2.0

import RunLoopTesting
import XCTest

import class RunLoopCore.RunLoop

final class DebouncerXCTests: XCTestCase {
  func testItCallsItsActionOnce() throws {
    try VirtualTime.asMain { time in
      // The main dispatch queue, which this loop also serves, is shared by the process. Blocks of other tests in it
      // do not count.
      func own(_ log: String) -> [Substring] {
        log.split(separator: " ").filter { $0 != "M" && !$0.hasPrefix("M@") }
      }
      let debouncer = Debouncer(delay: .seconds(30), on: .main) { time.log.write("saved") }
      debouncer.report()
      try time.advance(by: .seconds(29))
      XCTAssertEqual(own(time.log.callOuts), [])
      try time.advance(by: .seconds(1))
      XCTAssertEqual(own(time.log.timedCallOuts), ["T@30000", "saved@30000"])
    }
  }
}

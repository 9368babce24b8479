// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopTesting
import XCTest

// XCTest imports Foundation, whose classes have the same names.
import class RunLoopCore.RunLoop
import class RunLoopCore.Timer
import class RunLoopThreads.Thread

final class MainThreadXCTests: XCTestCase {
  @MainActor
  func testItIsTheRealMainThread() throws {
    let main = RunLoop.main
    try VirtualTime.asMain { time in
      MainActor.assertIsolated()
      XCTAssertTrue(Thread.isMainThread)
      RunLoop.main.schedule(in: .seconds(30)) { _ in
        MainActor.assumeIsolated { time.log.write("isolated") }
      }
      try time.advance(by: .seconds(30))
      XCTAssertEqual(time.log.timedCallOuts, "T@30000 isolated@30000")
    }
    XCTAssertTrue(RunLoop.main === main)
    XCTAssertTrue(RunLoop.current === main)
  }

  func testTheMainDispatchQueueAndTheMainActorAreServed() throws {
    try VirtualTime.asMain { time in
      DispatchQueue.main.async { time.log.write("queue") }
      try time.advance(by: .seconds(1))
      XCTAssertEqual(time.log.count(of: "queue"), 1)
      let done = Box(false)
      Task { @MainActor in
        time.log.write("actor")
        done.value = true
      }
      // A thread of the pool first moves the task to the main queue.
      while !done.value { try time.advance(by: .zero) }
      XCTAssertEqual(time.log.count(of: "actor"), 1)
      XCTAssertGreaterThanOrEqual(time.log.count(of: "M"), 2)
    }
  }

  func testOnThisThreadIsAsMainThere() throws {
    try VirtualTime.onThisThread { _ in
      XCTAssertTrue(RunLoop.main === RunLoop.current)
      XCTAssertTrue(Thread.isMainThread)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Dispatch
  import XCTest

  import TestSupport

  @testable import RunLoopCore
  @testable import class RunLoopCore.RunLoop

  /// Failing system calls on the real main thread.
  final class MainQueueFaultTests: XCTestCase {
    // The tests' program links the umbrella too, and there the main dispatch queue is Core Foundation's as soon as that
    // has a main loop, which XCTest makes. These tests are about our loop alone.

    override func setUp() {
      RunLoop.main.mainService?.turn(on: false)
      RunLoop.main.removeHost()
    }

    override func tearDown() { RunLoop.main.mainService?.turn(on: true) }

    // R110, R111
    func testANoticeOfTheMainQueueThatASignalInterruptsIsTakenAgain() {
      let (loop, log, plan) = (RunLoop.current, Log(), FaultPlan())
      let observer = loop.observe(log)
      DispatchQueue.main.async {
        log.write("Q")
        loop.stop()
      }
      plan.plan(.eventRead, .fails(EINTR), .fails(EINTR))
      plan.rule { log.write("\(loop.run(mode: .default, for: Duration.unlimited))") }
      observer.invalidate()
      XCTAssertEqual(log.text, "E BT BS BW AW Q X stopped")
      XCTAssertEqual(plan.counts[.eventRead], 3)
    }
  }
#endif

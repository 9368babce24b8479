// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Dispatch
  import XCTest

  import TestSupport

  @testable import RunLoopCore
  @testable import class RunLoopCore.RunLoop

  /// Fault injection on the real main thread.
  final class MainQueueFaultTests: XCTestCase {
    // The test program also links the umbrella module, in which Core Foundation serves the main dispatch queue as
    // soon as XCTest has created its main loop. These tests need only this package's loop.

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

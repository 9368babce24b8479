#if DEBUG
  import Dispatch
  import XCTest

  import TestSupport

  @testable import RunLoopCore
  @testable import class RunLoopCore.RunLoop

  /// Failing system calls on the real main thread.
  final class MainQueueFaultTests: XCTestCase {
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

// SPDX-License-Identifier: Apache-2.0

import Dispatch
import XCTest
import TestSupport

@testable import RunLoopCore
@testable import class RunLoopCore.RunLoop

/// The main dispatch queue, served by the main loop on the real main thread, on which synchronous test methods run.
final class MainQueueTests: XCTestCase {
  // The test program also links the umbrella module, in which Core Foundation serves the main dispatch queue as soon
  // as XCTest has created its main loop. These tests need only this package's loop.

  override func setUp() {
    RunLoop.main.mainService?.turn(on: false)
    RunLoop.main.removeHost()
  }

  override func tearDown() { RunLoop.main.mainService?.turn(on: true) }

  private let loop = RunLoop.current

  /// Logs a run in the default mode that stops by itself.
  private func log(for timeout: Duration = .unlimited, _ setUp: (Log) -> Void) -> String {
    let log = Log()
    let observer = loop.observe(log)
    setUp(log)
    log.write("\(loop.run(mode: .default, for: timeout))")
    observer.invalidate()
    return log.text
  }

  // R113
  func testTheMainThreadsLoopIsTheMainLoop() {
    XCTAssertEqual(loop, RunLoop.main)
    XCTAssertEqual(onNewThread { RunLoop.main }, loop)
  }

  // R110, R112
  func testBlocksAndTasksOfTheMainQueueRunOnTheMainThread() {
    let text = log { log in
      let loop = loop
      DispatchQueue.main.async {
        MainActor.assumeIsolated { log.write("Q") }
        Task { @MainActor in
          MainActor.assertIsolated()
          log.write("task")
          DispatchQueue.global().async { DispatchQueue.main.async { loop.stop() } }
        }
      }
    }
    XCTAssertTrue(text.contains("Q"), text)
    XCTAssertTrue(text.contains("task"), text)
    XCTAssertTrue(text.hasSuffix("X stopped"), text)
  }

  // R27, R12
  func testTheMainQueueKeepsTheMainLoopAlive() {
    XCTAssertEqual(loop.run(mode: .default, for: .zero), .timedOut)
    XCTAssertEqual(loop.run(mode: "never made", for: .zero), .finished)
    XCTAssertEqual(onNewThread { RunLoop.current.run(mode: .default, for: .zero) }, .finished)
  }

  func testARunWithinABlockOfTheQueueSleepsThoughMoreWasQueued() {
    let looks = Box<Int?>(nil)
    _ = log { log in
      let loop = loop
      DispatchQueue.main.async {
        // Posted for the outer run, because that block is still running.
        DispatchQueue.main.async { loop.stop() }
        loop.looker = LookingTests.eager
        let before = loop.statistics.lookCount
        _ = loop.run(mode: .default, for: .milliseconds(100))
        looks.value = loop.statistics.lookCount - before
      }
    }
    // If a notification that this run cannot serve ended a spin, the loop would spin until its deadline.
    XCTAssertLessThanOrEqual(looks.value ?? 1000, 20)
  }

  // R2, R4, R111
  func testOneCallOutDrainsWhatWasQueuedBeforeIt() {
    let text = log { log in
      let loop = loop
      DispatchQueue.main.async {
        log.write("Q1")
        DispatchQueue.main.async {
          log.write("Q3")
          loop.stop()
        }
      }
      DispatchQueue.main.async { log.write("Q2") }
    }
    // The pass after a drain does not check the queue before its wait, but the wait finds it.
    XCTAssertEqual(text, "E BT BS BW AW Q1 Q2 BT BS BW AW Q3 X stopped")
  }

  // R4
  func testTheMainQueueIsAskedBeforeTheWaitButNotInTheFirstPass() {
    let text = log { log in
      let loop = loop
      let source = loop.keepAlive()
      loop.perform {
        log.write("B")
        loop.perform {
          log.write("B2")
          DispatchQueue.main.async {
            log.write("Q")
            source.invalidate()
            loop.stop()
          }
        }
      }
    }
    XCTAssertEqual(text, "E BT BS B BW AW B2 BT BS Q X stopped")
  }

  // R8, R111
  func testADrainCountsAsAHandledSource() {
    DispatchQueue.main.async {}
    XCTAssertEqual(loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true), .handledSource)
  }

  // R109, R110
  func testTheMainQueueIsNotServedInsideOneOfItsBlocks() {
    // Earlier tests may have handed off work to the main thread, which leaves a source that keeps the mode alive.
    // This ensures that there is one.
    _ = loop.handOff(inModes: [.default]) {}
    loop.run(mode: .default, for: .zero)
    let text = log { log in
      let loop = loop
      DispatchQueue.main.async {
        DispatchQueue.main.async {
          log.write("Q2")
          loop.stop()
        }
        log.write("\(loop.run(mode: .default, for: .zero))")
        let timer = loop.after(.milliseconds(1)) { _ in
          log.write("T")
          loop.stop()
        }
        log.write("\(loop.run(mode: .default, for: .unlimited))")
        timer.invalidate()
      }
    }
    XCTAssertEqual(text, "E BT BS BW AW E BT BS X timedOut E BT BS BW AW T X stopped BT BS BW AW Q2 X stopped")
  }

  // R109
  func testTheMainQueueIsServedInsideATimer() {
    let text = log { log in
      let loop = loop
      loop.after(.zero) { _ in
        DispatchQueue.main.async {
          log.write("Q")
          loop.stop()
        }
        log.write("\(loop.run(mode: .default, for: .unlimited))")
        loop.stop()
      }
    }
    XCTAssertEqual(text, "E BT BS BW AW E BT BS BW AW Q X stopped X stopped")
  }

  // R110
  func testTheMainQueueIsServedInCommonModesOnly() throws {
    let asked = Log()
    DispatchQueue.main.async { asked.write("Q") }
    let source = loop.keepAlive("uncommon")
    XCTAssertEqual(loop.run(mode: "uncommon", for: .milliseconds(1)), .timedOut)
    XCTAssertEqual(asked.text, "")
    source.invalidate()
    try loop.addCommonMode("made common")
    loop.keepAlive("made common").invalidate()
    XCTAssertEqual(loop.run(mode: "made common", for: .zero, returnAfterSourceHandled: true), .handledSource)
    XCTAssertEqual(asked.text, "Q")
  }
}

// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import RunLoopCore
import RunLoopKit
import TestSupport
import XCTest

/// Core Foundation's own `CFRunLoopStop` while this package's main loop is always busy, so that it only polls Core
/// Foundation's.
final class BusyLoopStopTests: XCTestCase {
  /// Core Foundation's own function, as called by code that does not import this package.
  private static let stop: @Sendable () -> Void = { CoreFoundation.CFRunLoopStop(CFRunLoopGetMain()) }

  /// Runs this package's busy loop until a Core Foundation item stops it; returns false if the stop is lost.
  private func isStopped(nested: Bool = false, by call: (@escaping @Sendable () -> Void) -> Void) -> Bool {
    let hasCalled = Counter()
    let isOver = Box(false)
    let isLost = Box(false)
    @Sendable func work() {
      guard !isOver.value else { return }
      // Enough passes for any stop to arrive.
      if hasCalled.value > 0 { hasCalled.add() }
      guard hasCalled.value < 1000 else {
        isLost.value = true
        return RunLoop.main.stop()
      }
      RunLoop.main.perform(work)
    }
    work()
    call {
      hasCalled.add()
      BusyLoopStopTests.stop()
    }
    let result = RunLoop.main.runUntilStopped()
    isOver.value = true
    // Items that have not run yet now find the test over.
    RunLoop.main.run(mode: .default, for: .zero)
    return result == .stopped && !isLost.value
  }

  // R35, M32
  func testATimerOfFoundationsStopsABusyRun() {
    XCTAssert(isStopped { stop in foundationTimer(after: 0.001) { _ in stop() } })
  }

  // R35, M32
  func testASignalledSourceOfCoreFoundationsStopsABusyRun() {
    let sources = Box<[CFSource]>([])
    XCTAssert(
      isStopped { stop in
        let source = CFSource(stop)
        sources.value.append(source)
        CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
        CFRunLoopSourceSignal(source.source)
      })
    for source in sources.value { source.invalidate() }
  }

  // R35, M32
  func testADescriptorOfCoreFoundationsStopsABusyRun() throws {
    let pipe = try RawPipe()
    let sources = Box<[CFSource]>([])
    XCTAssert(
      isStopped { stop in
        let source = CFSource(pipe.reading, stop)
        sources.value.append(source)
        CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
        pipe.write([1, 2, 3, 4, 5, 6, 7, 8])
      })
    for source in sources.value { source.invalidate() }
  }

  // R35, R110, M32
  func testABlockOfTheMainQueueStopsABusyRun() {
    XCTAssert(isStopped { stop in DispatchQueue.main.async { stop() } })
  }

  // R35, M32
  func testABlockOfCoreFoundationsStopsABusyRun() {
    XCTAssert(
      isStopped { stop in CFRunLoopPerformBlock(CFRunLoopGetMain(), kCFRunLoopDefaultMode) { stop() } })
  }

  // R35, R121, M32
  func testARunThatEndsAfterASourceIsStoppedByASourceOfCoreFoundations() {
    let source = CFSource(BusyLoopStopTests.stop)
    CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
    RunLoop.main.perform {}
    CFRunLoopSourceSignal(source.source)
    // As in Core Foundation, the run ends because of the source.
    XCTAssertEqual(RunLoop.main.run(mode: .default, for: .seconds(600), returnAfterSourceHandled: true), .handledSource)
    source.invalidate()
  }

  // R35, M20, M32
  func testAStopOfABusyRunEndsNoOtherRun() {
    for _ in 0..<20 {
      XCTAssert(
        isStopped { stop in
          CFRunLoopPerformBlock(CFRunLoopGetMain(), kCFRunLoopDefaultMode) {
            stop()
            RunLoop.main.stop()
          }
        })
      XCTAssertEqual(RunLoop.main.run(mode: .default, for: .milliseconds(1)), .timedOut)
      XCTAssertEqual(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false), .timedOut)
    }
  }

  // R35, R108, M32
  func testAStopBeforeANestedRunStopsTheRunAround() {
    // Core Foundation's stop and this package's work arrive in the same turn, and the work runs a nested run.
    for mode in [RunLoop.Mode.default, RunLoop.Mode("BusyLoopStopTests.nested")] {
      let log = Log()
      let keep = RunLoop.Source {}
      RunLoop.main.add(keep, forMode: mode)
      let source = CFSource {
        RunLoop.main.perform {
          // Ready in the first turn of the nested run.
          let inner = CFSource { log.write("inner") }
          CFRunLoopAddSource(CFRunLoopGetMain(), inner.source, kCFRunLoopDefaultMode)
          CFRunLoopSourceSignal(inner.source)
          log.write("\(RunLoop.main.run(mode: mode, for: .milliseconds(1)))")
          inner.invalidate()
        }
        BusyLoopStopTests.stop()
      }
      CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
      DispatchQueue.global().async {
        waitUntil { RunLoop.main.isWaiting }
        CFRunLoopSourceSignal(source.source)
        CFRunLoopWakeUp(CFRunLoopGetMain())
      }
      log.write("\(RunLoop.main.runUntilStopped())")
      source.invalidate()
      keep.invalidate()
      XCTAssertEqual(log.text.replacing("inner ", with: ""), "timedOut stopped")
    }
  }

  // R35, R108, M32
  func testAStopBeforeAnothersRunStopsTheRunAround() {
    let log = Log()
    let source = CFSource {
      RunLoop.main.perform {
        let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false)
        log.write(result == .timedOut ? "timedOut" : "\(result.rawValue)")
      }
      BusyLoopStopTests.stop()
    }
    CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
    DispatchQueue.global().async {
      waitUntil { RunLoop.main.isWaiting }
      CFRunLoopSourceSignal(source.source)
      CFRunLoopWakeUp(CFRunLoopGetMain())
    }
    log.write("\(RunLoop.main.runUntilStopped())")
    source.invalidate()
    XCTAssertEqual(log.text, "timedOut stopped")
  }

  // M32
  func testOursIsServedInAnothersRunOfAModeThatIsNewToIt() {
    let mode = RunLoop.Mode("BusyLoopStopTests.new")
    let log = Log()
    let outer = Foundation.Timer(timeInterval: 0.001, repeats: false) { _ in
      // The mode is added to this package's loop while a run of it already waits there.
      let timer = Timer(timeInterval: 0.001, repeats: false) { _ in
        log.write("ours")
        CFRunLoopStop(CFRunLoopGetMain())
      }
      RunLoop.main.add(timer, forMode: mode)
      log.write(CFRunLoopRunInMode(cfMode(mode), 60, false) == .stopped ? "stopped" : "?")
      RunLoop.main.stop()
    }
    Foundation.RunLoop.main.add(outer, forMode: Foundation.RunLoop.Mode(mode.rawValue))
    let result = RunLoop.main.run(mode: mode, for: .seconds(600))
    XCTAssertEqual(result, .stopped)
    XCTAssertEqual(log.text, "ours stopped")
  }
}

// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import RunLoopCore
import RunLoopKit
import TestSupport
import XCTest

/// `CFRunLoopStop` on the main thread, where the innermost run may belong to either loop.
final class MainLoopStopTests: XCTestCase {
  /// Core Foundation's own function, as called by code that does not import this package.
  private static let stopMain: @Sendable () -> Void = { CoreFoundation.CFRunLoopStop(CFRunLoopGetMain()) }
  /// The function called by code that imports this package.
  private static let stopInnermost: @Sendable () -> Void = { CFRunLoopStop(CFRunLoopGetMain()) }

  private func assertStopped(
    line: UInt = #line, _ stop: @escaping @Sendable () -> Void, by call: (@escaping @Sendable () -> Void) -> Void
  ) {
    call(stop)
    XCTAssertEqual(RunLoop.main.runUntilStopped(), .stopped, line: line)
  }

  // R35, R40, M32
  func testATimerOfFoundationsStopsARunOfOurs() {
    for stop in [Self.stopMain, Self.stopInnermost] {
      assertStopped(stop) { stop in foundationTimer(after: 0.001) { _ in stop() } }
    }
  }

  // R35, M32
  func testASourceOfCoreFoundationsStopsARunOfOurs() throws {
    for stop in [Self.stopMain, Self.stopInnermost] {
      let source = CFSource(stop)
      CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
      assertStopped(stop) { _ in
        DispatchQueue.global().async {
          CFRunLoopSourceSignal(source.source)
          CFRunLoopWakeUp(CFRunLoopGetMain())
        }
      }
      source.invalidate()
      let pipe = try RawPipe()
      let reader = CFSource(pipe.reading, stop)
      CFRunLoopAddSource(CFRunLoopGetMain(), reader.source, kCFRunLoopDefaultMode)
      assertStopped(stop) { _ in DispatchQueue.global().async { pipe.write([1, 2, 3, 4, 5, 6, 7, 8]) } }
      reader.invalidate()
    }
  }

  // R35, R110, M32
  func testABlockOfTheMainQueueStopsARunOfOurs() {
    for stop in [Self.stopMain, Self.stopInnermost] {
      assertStopped(stop) { stop in DispatchQueue.main.async { stop() } }
    }
  }

  // R35, M32
  func testAStopThatComesWithWorkForOursIsNotLost() {
    for _ in 0..<20 {
      let source = CFSource {
        RunLoop.main.perform {}
        MainLoopStopTests.stopMain()
      }
      CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
      assertStopped({}) { _ in
        DispatchQueue.global().async {
          CFRunLoopSourceSignal(source.source)
          CFRunLoopWakeUp(CFRunLoopGetMain())
        }
      }
      source.invalidate()
    }
  }

  // R35, M20, M32
  func testAStopThatComesWithWorkForOursEndsNoOtherRun() {
    for _ in 0..<20 {
      let source = CFSource {
        RunLoop.main.stop()
        MainLoopStopTests.stopMain()
      }
      CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
      CFRunLoopSourceSignal(source.source)
      XCTAssertEqual(RunLoop.main.runUntilStopped(), .stopped)
      XCTAssertEqual(RunLoop.main.run(mode: .default, for: .milliseconds(1)), .timedOut)
      XCTAssertEqual(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false), .timedOut)
      source.invalidate()
    }
  }

  // R35, M32
  func testAnotherThreadStopsARunOfOurs() {
    for stop in [Self.stopMain, Self.stopInnermost] {
      assertStopped(stop) { stop in
        DispatchQueue.global().async {
          waitUntil { RunLoop.main.isWaiting && CFRunLoopIsWaiting(CFRunLoopGetMain()) }
          stop()
        }
      }
    }
  }

  // R35, M32
  func testCallOutsOfOursStopARunOfOurs() {
    assertStopped(Self.stopInnermost) { stop in
      Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in stop() }
    }
    assertStopped(Self.stopInnermost) { stop in RunLoop.main.perform { stop() } }
  }

  // R35, M32
  func testOnlyTheInnermostRunIsStopped() {
    let log = Log()
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      RunLoop.main.perform { CFRunLoopStop(CFRunLoopGetMain()) }
      log.write(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == .stopped ? "stopped" : "?")
      RunLoop.main.perform {
        log.write("still running")
        CFRunLoopStop(CFRunLoopGetMain())
      }
    }
    log.write("\(RunLoop.main.runUntilStopped())")
    XCTAssertEqual(log.text, "stopped still running stopped")
  }
}

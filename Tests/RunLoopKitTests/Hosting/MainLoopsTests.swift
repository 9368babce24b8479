// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Dispatch
import Foundation
import RunLoopCore
import RunLoopKit
import TestSupport
import XCTest

/// This package's main loop and Core Foundation's serve each other automatically.
final class MainLoopsTests: XCTestCase {
  // R31, R33, R34, M32
  func testOutsideEveryRunNothingStands() {
    let loop = RunLoop.main
    let modes = Box<[RunLoop.Mode?]>([])
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      modes.update { $0.append(RunLoop.main.currentMode) }
      CFRunLoopStop(CFRunLoopGetMain())
    }
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)
    XCTAssertEqual(modes.value, [.default])
    XCTAssertNil(loop.currentMode)
    XCTAssertFalse(loop.isWaiting)
    loop.stop()
    XCTAssertEqual(loop.run(mode: .default, for: .zero), .timedOut)
  }

  // R121, M32
  func testWhatIsNoSourceOfOursEndsNoRunOfFoundations() {
    let fired = Counter()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in
      fired.add()
      RunLoop.main.perform { fired.add() }
    }
    let began = SuspendingClock.now
    for _ in 0..<5 { _ = Foundation.RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02)) }
    // Each run lasted until its time limit.
    XCTAssertGreaterThanOrEqual(SuspendingClock.now - began, .milliseconds(98))
    XCTAssertGreaterThan(fired.value, 0)
    timer.invalidate()
  }

  // R8, R121, M32
  func testASourceOfOursEndsARunOfFoundations() throws {
    let performed = Counter()
    let source = RunLoop.Source { performed.add() }
    RunLoop.main.add(source, forMode: .default)
    DispatchQueue.global().async {
      source.signal()
      RunLoop.main.wakeUp()
    }
    while performed.value == 0 { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
    source.invalidate()
    let pipe = try RawPipe()
    let descriptor = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
      performed.add()
      _ = pipe.read()
    }
    try RunLoop.main.add(descriptor, forMode: .default)
    DispatchQueue.global().async { pipe.write() }
    while performed.value == 1 { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
    descriptor.invalidate()
    XCTAssertEqual(performed.value, 2)
  }

  // R8, M32
  func testOneSourceEndsOneRun() {
    let log = Log()
    let sources = (0..<3).map { number in RunLoop.Source { log.write("\(number)") } }
    for source in sources {
      RunLoop.main.add(source, forMode: .default)
      source.signal()
    }
    for _ in 0..<3 {
      XCTAssertEqual(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, true), .handledSource)
      log.write("|")
    }
    XCTAssertEqual(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), .timedOut)
    for source in sources { source.invalidate() }
    XCTAssertEqual(log.text, "0 | 1 | 2 |")
  }

  // R108, M32
  func testRunsOfEitherNestInTheOthers() {
    let log = Log()
    let outer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      log.write("[")
      foundationTimer(after: 0.001) { _ in
        log.write("(")
        Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
          log.write("T")
          RunLoop.main.stop()
        }
        log.write("\(RunLoop.main.runUntilStopped())")
        log.write(")")
        CFRunLoopStop(CFRunLoopGetMain())
      }
      log.write(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == .stopped ? "stopped" : "?")
      log.write("]")
      RunLoop.main.stop()
    }
    XCTAssertEqual(RunLoop.main.runUntilStopped(), .stopped)
    XCTAssertFalse(outer.isValid)
    XCTAssertEqual(log.text, "[ ( T stopped ) stopped ]")
  }

  // M32
  func testARunInACallOutOfAnotherLeavesItsDescriptorsWatched() throws {
    let pipe = try RawPipe()
    let descriptor = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
      _ = pipe.read()
      CFRunLoopStop(CFRunLoopGetMain())
    }
    try RunLoop.main.add(descriptor, forMode: .default)
    // The outer run already watches the descriptor.
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.002, false)
      DispatchQueue.global().async { pipe.write() }
    }
    XCTAssertEqual(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false), .stopped)
    descriptor.invalidate()
  }

  // M19, M32
  func testWhatIsAlwaysReadyStarvesNoTimerOfTheOther() {
    let log = Log()
    let isOver = Box(false)
    @Sendable func again() { if !isOver.value { RunLoop.main.perform(again) } }
    again()
    foundationTimer(after: 0.001) { _ in
      log.write("F")
      CFRunLoopStop(CFRunLoopGetMain())
    }
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)
    foundationTimer(after: 0.001) { _ in
      log.write("F")
      RunLoop.main.stop()
    }
    XCTAssertEqual(RunLoop.main.runUntilStopped(), .stopped)
    isOver.value = true
    // Now Core Foundation's loop is the one that is always busy.
    let source = Resignalling()
    CFRunLoopAddSource(CFRunLoopGetMain(), source.source, kCFRunLoopDefaultMode)
    source.signal()
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      log.write("T")
      CFRunLoopStop(CFRunLoopGetMain())
    }
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)
    Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in
      log.write("T")
      RunLoop.main.stop()
    }
    XCTAssertEqual(RunLoop.main.runUntilStopped(), .stopped)
    source.invalidate()
    XCTAssertEqual(log.text, "F F T T")
  }

  // R110, R111, M32
  func testTheMainQueueIsDrainedOnceAndInOrderInRunsOfBoth() {
    let numbers = Box<[Int]>([])
    for round in 0..<10 {
      DispatchQueue.global().async {
        for number in 0..<50 {
          DispatchQueue.main.async { numbers.value.append(round * 50 + number) }
          if number.isMultiple(of: 10) { RunLoop.main.perform {} }
        }
      }
      while numbers.value.count < (round + 1) * 50 {
        if round.isMultiple(of: 2) {
          _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture)
        } else {
          RunLoop.main.run(mode: .default, before: .distantFuture)
        }
      }
    }
    XCTAssertEqual(numbers.value, Array(0..<500))
  }

  // M32
  func testACustomModeIsServedWhereOursHasAnItem() {
    let mode = RunLoop.Mode("MainLoopsTests.custom")
    let foundationMode = Foundation.RunLoop.Mode(mode.rawValue)
    XCTAssertFalse(Foundation.RunLoop.main.run(mode: foundationMode, before: .distantFuture))
    let fired = Counter()
    let timer = Timer(timeInterval: 0.001, repeats: false) { _ in fired.add() }
    RunLoop.main.add(timer, forMode: mode)
    // The mode is empty once the timer has fired.
    while Foundation.RunLoop.main.run(mode: foundationMode, before: .distantFuture) {}
    XCTAssertEqual(fired.value, 1)
    XCTAssertFalse(timer.isValid)
  }

  // M32
  func testAnItemOfOursThatIsGoneKeepsNoRunOfFoundationsAlive() {
    let mode = RunLoop.Mode("MainLoopsTests.gone")
    let timer = Timer(timeInterval: 3600, repeats: false) { _ in }
    RunLoop.main.add(timer, forMode: mode)
    timer.invalidate()
    while Foundation.RunLoop.main.run(mode: Foundation.RunLoop.Mode(mode.rawValue), before: .distantFuture) {}
  }

  // M32
  func testAModeThatIsMadeCommonIsCommonInBothLoops() throws {
    let mode = RunLoop.Mode("MainLoopsTests.madeCommon")
    let theirMode = CFStringCreateWithCString(nil, mode.rawValue, CFStringBuiltInEncodings.UTF8.rawValue)
    let (ours, theirs) = (Counter(), Counter())
    let timer = Timer(timeInterval: 0.001, repeats: true) { _ in ours.add() }
    RunLoop.main.add(timer, forMode: .common)
    let other = Foundation.Timer(timeInterval: 0.001, repeats: true) { _ in theirs.add() }
    Foundation.RunLoop.main.add(other, forMode: .common)
    try RunLoop.main.addCommonMode(mode)
    // Both kinds of timers keep both kinds of runs alive.
    for _ in 0..<3 {
      let before = (ours.value, theirs.value)
      while ours.value == before.0 || theirs.value == before.1 {
        XCTAssertNotEqual(CFRunLoopRunInMode(theirMode, 0.02, false), .finished)
      }
      let between = (ours.value, theirs.value)
      while ours.value == between.0 || theirs.value == between.1 {
        XCTAssertNotEqual(RunLoop.main.run(mode: mode, for: .milliseconds(20)), .finished)
      }
    }
    timer.invalidate()
    other.invalidate()
  }

  // M32
  func testServingCanBeEnded() throws {
    let fired = Counter()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in fired.add() }
    RunLoop.main.stopServingCoreFoundation()
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false)
    XCTAssertEqual(fired.value, 0)
    serveWithoutACallAgain()
    while fired.value == 0 { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false) }
    timer.invalidate()
  }
}

/// A Core Foundation source that signals itself again whenever it performs.
private final class Resignalling: @unchecked Sendable {
  // Sendable: used only on the main thread.
  private(set) var source: CFRunLoopSource!

  init() {
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(self).toOpaque()
    context.perform = { info in
      if let info { Unmanaged<Resignalling>.fromOpaque(info).takeUnretainedValue().signal() }
    }
    source = CFRunLoopSourceCreate(nil, 0, &context)
  }

  func signal() { CFRunLoopSourceSignal(source) }
  func invalidate() { CFRunLoopSourceInvalidate(source) }
}

// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
@testable import RunLoopKit
import TestRules
import TestSupport
import Testing

/// Core Foundation's loop of a thread other than the main thread, which is served automatically.
@Suite("Foundation's loop of a thread, without a call", .timeLimit(.minutes(20)))
struct ThreadServiceTests {
  @Test("a thread whose only item is a Foundation timer runs until it has fired", .rule(.m32))
  func onlyATimer() {
    let log = Log()
    onNewThread {
      foundationTimer(after: 0.001) { _ in log.write("T") }
      log.write("\(RunLoop.current.runUntilStopped())")
    }
    #expect(log.text == "T finished")
  }

  @Test("run() continues while its mode has a repeating Foundation timer", .rule(.m32))
  func runWithoutALimit() {
    let fired = Counter()
    onNewThread {
      let timer = Foundation.Timer(timeInterval: 0.001, repeats: true) { timer in
        if fired.add() == 3 { timer.invalidate() }
      }
      Foundation.RunLoop.current.add(timer, forMode: .default)
      RunLoop.current.run()
    }
    #expect(fired.value == 3)
  }

  @Test("run(mode:before:) and run(until:) serve Foundation's timers", .rule(.m32))
  func foundationsSpellings() {
    let fired = Counter()
    onNewThread {
      foundationTimer(after: 0.001) { _ in fired.add() }
      while fired.value == 0 { RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 10)) }
      foundationTimer(after: 0.001) { _ in
        fired.add()
        // The run ends when nothing is left in either loop.
      }
      RunLoop.current.run(until: .distantFuture)
    }
    #expect(fired.value == 2)
  }

  @Test("in a run with a time limit, a Core Foundation source keeps the mode alive", .rule(.m32))
  func sourceWithALimit() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      let cf = Handed(CFRunLoopGetCurrent()!)
      let source = CFSource {
        log.write("S")
        loop.stop()
      }
      CFRunLoopAddSource(cf.value, source.source, kCFRunLoopDefaultMode)
      let thread = startThread {
        waitUntil { loop.isWaiting }
        CFRunLoopSourceSignal(source.source)
        CFRunLoopWakeUp(cf.value)
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1000)))")
      thread.result()
      source.invalidate()
    }
    #expect(log.text == "S stopped")
  }

  @Test("an unlimited run reports a Core Foundation source that it ignores before serveCoreFoundation()", .rule(.m32))
  func sourceWithoutALimit() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      onNewThread {
        let source = CFSource {}
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source.source, kCFRunLoopDefaultMode)
        RunLoop.current.run()
        guard RunLoop.current.runUntilStopped() == .finished else { exit(2) }
        source.invalidate()
      }
      guard Diagnostic.unservedItems.count == 2 else { exit(3) }
      onNewThread {
        let source = CFSource { RunLoop.current.stop() }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source.source, kCFRunLoopDefaultMode)
        guard (try? RunLoop.current.serveCoreFoundation()) != nil else { exit(4) }
        CFRunLoopSourceSignal(source.source)
        guard RunLoop.current.runUntilStopped() == .stopped else { exit(5) }
        source.invalidate()
      }
      guard Diagnostic.unservedItems.count == 2 else { exit(6) }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("call RunLoop.current.serveCoreFoundation()"), "\(text)")
  }

  @Test("items that only a Foundation run could have served are reported when their thread ends", .rule(.m32))
  func reverse() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      // A thread that has not used Foundation's loop.
      onNewThread { RunLoop.current.add(Timer(timeInterval: 0.01, repeats: true) { _ in }, forMode: .default) }
      guard Diagnostic.unservedItems.count == 0 else { exit(2) }
      // Served by this package's loop.
      onNewThread {
        RunLoop.current.add(Timer(timeInterval: 0.01, repeats: true) { _ in }, forMode: .default)
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
        RunLoop.current.run(mode: .default, for: .zero)
      }
      guard Diagnostic.unservedItems.count == 0 else { exit(3) }
      onNewThread {
        RunLoop.current.add(Timer(timeInterval: 0.01, repeats: true) { _ in }, forMode: .default)
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false)
      }
      guard Diagnostic.unservedItems.count == 1 else { exit(4) }
      // Blocks posted to a loop that never runs are lost, too.
      onNewThread {
        RunLoop.current.perform {}
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false)
      }
      guard Diagnostic.unservedItems.count == 2 else { exit(5) }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("its run loop was never run, with 1 items and 0 blocks"), "\(text)")
    #expect(text.contains("its run loop was never run, with 0 items and 1 blocks"), "\(text)")
  }

  @Test(
    "a timer added by another thread to Core Foundation's empty loop ends a sleep in progress",
    .rule(.m32))
  func addedWhileAsleep() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      let cf = Handed(CFRunLoopGetCurrent()!)
      let keeper = loop.keepAlive()
      let thread = startThread {
        waitUntil { loop.isWaiting }
        let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in
          log.write("T")
          loop.stop()
        }
        CFRunLoopAddTimer(cf.value, timer, kCFRunLoopDefaultMode)
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1000)))")
      thread.result()
      keeper.invalidate()
    }
    #expect(log.text == "T stopped")
  }

  @Test("after stopServingCoreFoundation() nothing of Core Foundation's is served or keeps a run alive", .rule(.m32))
  func optOut() {
    let log = Log()
    onNewThread {
      RunLoop.current.stopServingCoreFoundation()
      let timer = foundationTimer(after: 0) { _ in log.write("T") }
      log.write("\(RunLoop.current.runUntilStopped())")
      log.write("\(RunLoop.current.isServingCoreFoundation)")
      timer.invalidate()
    }
    #expect(log.text == "finished false")
  }

  @Test("a thread without a Core Foundation loop gets none, and its loop no service", .rule(.m32))
  func none() {
    onNewThread {
      let loop = RunLoop.current
      loop.after(.zero) { _ in }
      #expect(loop.runUntilStopped() == .finished)
      #expect(loop.threadService == nil)
      #expect(!loop.isServingCoreFoundation)
    }
  }

  @Test("nested and polling runs serve Core Foundation's loop too", .rule(.m32))
  func nestedAndLooking() {
    let log = Log()
    onNewThread {
      let loop = RunLoop.current
      loop.perform {
        foundationTimer(after: 0.001) { _ in
          log.write("N")
          loop.stop()
        }
        log.write("\(loop.run(mode: .default, for: .seconds(1000)))")
      }
      loop.run(mode: .default, for: .zero)
      let looks = Counter()
      foundationTimer(after: 0) { _ in looks.add() }
      while looks.value == 0 { loop.run(mode: .default, for: .zero) }
      log.write("L")
    }
    #expect(log.text == "N stopped L")
  }
}

/// Passes a value that is not `Sendable` to another thread.
private struct Handed<Value>: @unchecked Sendable {
  // Sendable: Core Foundation's functions can be called on any thread.
  let value: Value
  init(_ value: Value) { self.value = value }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Where a source is")
struct SourceMembershipTests {
  private func source(_ log: Log) -> RunLoop.Source {
    RunLoop.Source(
      schedule: { _, mode in log.write("+\(mode)") }, cancel: { _, mode in log.write("-\(mode)") }, perform: {})
  }

  @Test("a source is scheduled once in each mode that it enters", .rule(.r72))
  func schedule() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log)
      for mode: RunLoop.Mode in ["a", "b", "a"] { log.write("\(loop.add(source, forMode: mode))") }
    }
    #expect(log == "+a true +b true true")
  }

  @Test("a common source is scheduled in each common mode, by its name", .rule(.r72))
  func scheduleCommon() {
    let log = record(observing: nil) { _, loop, log in
      try? loop.addCommonMode("a")
      let source = source(log)
      loop.add(source, forMode: .common)
      loop.add(source, forMode: .common)
      loop.add(source, forMode: "a")
      source.invalidate()
    }
    #expect(log == "+kCFRunLoopDefaultMode +a -kCFRunLoopDefaultMode -a")
  }

  @Test("a common source is scheduled in a mode that becomes common", .rule(.r72, .r102))
  func scheduleNewCommonMode() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log)
      loop.add(source, forMode: .common)
      try? loop.addCommonMode("a")
      try? loop.addCommonMode("a")
      source.invalidate()
    }
    #expect(log == "+kCFRunLoopDefaultMode +a -kCFRunLoopDefaultMode -a")
  }

  @Test("schedule and cancel receive the loop, and find the source already in or out", .rule(.r72, .r73))
  func arguments() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      let isIn = { @Sendable in source.value.map { loop.contains($0, forMode: "a") } ?? false }
      let made = RunLoop.Source(
        schedule: { told, _ in log.write("+\(told == loop):\(isIn())") },
        cancel: { told, _ in log.write("-\(told == loop):\(isIn())") }, perform: {})
      source.value = made
      loop.add(made, forMode: "a")
      loop.remove(made, forMode: "a")
      source.value = nil
    }
    #expect(log == "+true:true -true:false")
  }

  @Test("a source is cancelled in the mode that it leaves, if it was there", .rule(.r73))
  func cancel() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log)
      loop.add(source, forMode: "a")
      loop.remove(source, forMode: "b")
      loop.remove(source, forMode: .common)
      loop.remove(source, forMode: "a")
      loop.remove(source, forMode: "a")
    }
    #expect(log == "+a -a")
  }

  @Test("a source that is invalidated is cancelled in each mode of each loop, once", .rule(.r73, .r74))
  func invalidate() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log)
      loop.add(source, forMode: "a")
      onVirtualTime { _, second in
        second.add(source, forMode: "b")
        source.invalidate()
        source.invalidate()
        log.write("\(loop.contains(source, forMode: "a")) \(second.contains(source, forMode: "b"))")
      }
      log.write("\(source.isValid)")
    }
    #expect(log == "+a +b -a -b false false false")
  }

  @Test("a source is cancelled in each mode when the loop's thread ends, and stays valid", .rule(.r73, .r115))
  func threadEnds() {
    let log = Log()
    let source = source(log)
    onVirtualTime { _, loop in
      loop.add(source, forMode: .default)
      log.write("end")
    }
    #expect(log.text == "+kCFRunLoopDefaultMode end -kCFRunLoopDefaultMode")
    #expect(source.isValid)
  }

  @Test("an invalid source is in no mode, not common, and is not added again", .rule(.r74))
  func invalid() {
    let log = record(observing: nil) { _, loop, log in
      let source = source(log)
      loop.add(source, forMode: .common)
      source.invalidate()
      log.write("\(loop.contains(source, forMode: .default)) \(loop.contains(source, forMode: .common))")
      log.write("\(loop.add(source, forMode: .default))")
      try? loop.addCommonMode("a")
    }
    #expect(log == "+kCFRunLoopDefaultMode -kCFRunLoopDefaultMode false false false")
  }

  @Test("a source does not keep a loop whose thread has ended", .rule(.r76))
  func loopIsReleased() {
    struct WeakLoop: Sendable {
      weak let loop: RunLoop?
    }
    let source = RunLoop.Source {}
    let reference = onVirtualTime { _, loop in
      loop.add(source, forMode: .default)
      loop.add(source, forMode: .common)
      return WeakLoop(loop: loop)
    }
    #expect(source.isValid)
    #expect(reference.loop == nil)
  }

  @Test("two sources that do the same are two", .rule(.r75, .m5))
  func identity() {
    let log = record(observing: nil) { _, loop, log in
      let perform = { @Sendable in log.write("S0") }
      let first = loop.signalled(perform)
      let second = RunLoop.Source(perform: perform)
      log.write("\(first == second) \(loop.contains(second, forMode: .default))")
      loop.add(second, forMode: .default)
      second.signal()
      loop.remove(first, forMode: .default)
      log.write("\(loop.contains(second, forMode: .default))")
      loop.run(log, for: .zero)
    }
    #expect(log == "false false true S0 timedOut")
  }
}

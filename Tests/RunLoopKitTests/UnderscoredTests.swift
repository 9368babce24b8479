// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import Testing
import TestSupport

/// A source that writes down what becomes of it.
private final class LoggedSource: RunLoop._Source {
  let log: Log

  init(_ log: Log, order: Int = 0) {
    self.log = log
    super.init(order: order)
  }

  override func didSchedule(in mode: RunLoop.Mode) { log.write("in:\(mode.rawValue)") }
  override func didCancel(in mode: RunLoop.Mode) { log.write("out:\(mode.rawValue)") }
  override func perform() { log.write("performed\(order)") }
}

@Suite("What Foundation on Linux has for XCTest", .timeLimit(.minutes(20)))
struct UnderscoredTests {
  @Test("a stop ends the innermost run")
  func stop() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.perform { loop._stop() }
      loop.add(Port(), forMode: .default)
      log.write("\(loop.runUntilStopped())")
      return log.text
    }
    #expect(log == "stopped")
  }

  @Test("an observer of stages is notified of each, in the order of the run, and ends with its object")
  func stages() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.add(Port(), forMode: "A")
      var observer: RunLoop._Observer? = loop._observe(.allActivities, in: "A") { log.write("\($0)") }
      loop.run(mode: "A", for: .milliseconds(1))
      log.write("valid:\(observer?.isValid == true)")
      observer = nil
      loop.run(mode: "A", for: .milliseconds(1))
      return log.text
    }
    #expect(log == "entry beforeTimers beforeSources beforeWaiting afterWaiting exit valid:true")
  }

  @Test("an observer that does not repeat is notified once, of its stage only")
  func once() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.add(Port(), forMode: "A")
      let observer = loop._observe(RunLoop._Activity.entry, in: "A", repeats: false, order: 3) { log.write("\($0)") }
      for _ in 0..<2 { loop.run(mode: "A", for: .milliseconds(1)) }
      log.write("valid:\(observer.isValid) \(observer.order)")
      let other = loop._observe(RunLoop._Activity.exit, in: "A") { log.write("\($0)") }
      other.invalidate()
      loop.run(mode: "A", for: .milliseconds(1))
      return log.text
    }
    #expect(log == "entry valid:false 3")
  }

  @Test("a source's subclass is notified of its modes and performed by order, once for a signal")
  func sources() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let (second, first) = (LoggedSource(log, order: 2), LoggedSource(log, order: 1))
      for source in [second, first] {
        loop._add(source, forMode: "A")
        source.signal()
        source.signal()
      }
      loop.run(mode: "A", for: .milliseconds(1))
      loop._remove(first, for: "A")
      first.signal()
      second.invalidate()
      log.write("\(first.isValid) \(second.isValid)")
      log.write("\(loop.run(mode: "A", for: .milliseconds(1)))")
      return log.text
    }
    #expect(log == "in:A in:A performed1 performed2 out:A out:A true false finished")
  }

  @Test("a source leaves its loop when its object goes, and nobody is called then")
  func releasedSource() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      var source: LoggedSource? = LoggedSource(log)
      if let source {
        loop._add(source, forMode: "A")
        source.signal()
      }
      source = nil
      log.write("\(loop.run(mode: "A", for: .milliseconds(1)))")
      return log.text
    }
    #expect(log == "in:A finished")
  }
}

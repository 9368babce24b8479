// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers that are fired by hand", .timeLimit(.minutes(20)))
struct TimerFireTests {
  @Test("a timer that fires once, and that two threads fire at once, calls its block once", .rule(.r96))
  func twoThreads() {
    let log = Log()
    let hold = Hold()
    let timer = Timer(at: 0) { _ in
      log.write("T")
      if !hold.begun.isOpen { hold.occupy() }
    }
    let first = startThread { timer.fire() }
    hold.begun.wait()
    timer.fire()
    log.write("second \(timer.isValid)")
    hold.released.open()
    first.result()
    log.write("\(timer.isValid)")
    timer.fire()
    #expect(log.text == "T second true false")
  }

  @Test("a timer that fires once calls its block once if a thread fires it while its loop does", .rule(.r96))
  func duringItsCall() {
    let log = record(observing: nil) { _, loop, log in
      let timer = loop.after(.milliseconds(5)) { timer in
        log.write("T")
        onNewThread { timer.fire() }
        timer.fire()
        log.write("\(timer.isValid)")
      }
      loop.run(log)
      log.write("\(timer.isValid)")
    }
    #expect(log == "T true finished false")
  }

  @Test("a loop skips and releases a one-shot timer while a thread fires it", .rule(.r96))
  func loopComesSecond() {
    let log = record(observing: nil) { _, loop, log in
      let hold = Hold()
      let timer = loop.after(.milliseconds(5)) { _ in
        log.write("T")
        hold.occupy()
      }
      let thread = startThread { timer.fire() }
      hold.begun.wait()
      loop.run(log)
      log.write("\(timer.isValid)")
      hold.released.open()
      thread.result()
    }
    #expect(log == "T finished false")
  }

  @Test("a repeating timer calls its block each time it is fired", .rule(.r99a))
  func repeating() {
    let log = record(observing: nil) { _, loop, log in
      let timer = loop.every(.seconds(1)) { _ in log.write("T") }
      timer.fire()
      timer.fire()
      log.write("\(timer.isValid)")
    }
    #expect(log == "T T true")
  }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The pass")
struct PassTests {
  @Test("one pass, step by step, with everything in it")
  func everything() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      loop.signalled { log.write("S0") }
      loop.perform { log.write("B") }
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        loop.perform { log.write("B2") }
      }
      let result = loop.run(mode: .default, for: .milliseconds(10))
      log.write("\(result)")
      return log.text
    }
    #expect(log == "E BT BS B S0 BT BS BW AW T B2 BT BS BW AW X timedOut")
  }

  @Test("a mode with nothing but a block runs it, and waits until its time is over")
  func blockOnly() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      loop.perform { log.write("B") }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "E BT BS B BW AW X timedOut")
  }

  @Test("a block that posts a block does not let the loop sleep before it ran")
  func blockFromBlock() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      loop.keepAlive()
      loop.perform {
        log.write("B1")
        loop.perform { log.write("B2") }
      }
      loop.run(mode: .default, for: .seconds(1))
      return log.text
    }
    #expect(log == "E BT BS B1 BW AW B2 BT BS BW AW X")
  }
}

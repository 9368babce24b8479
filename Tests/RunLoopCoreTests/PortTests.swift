// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Ports", .timeLimit(.minutes(20)))
struct PortTests {
  @Test("a port keeps a loop alive, with or without messages", .rule(.r25))
  func keepsAlive() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.add(Port { _, _ in }, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(10)))")
      time.stamp(log, "at")
      return log.text
    }
    #expect(log == "timedOut at10")
  }

  @Test(
    "a message wakes the loop by itself, and is received after the wait, before the blocks that it posts",
    .rule(.r2, .r50))
  func wakes() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.observe(log)
      let port = Port { _, message in
        time.stamp(log, "P\(message.id)@")
        loop.perform { log.write("B") }
      }
      loop.add(port, forMode: .default)
      time.at(.milliseconds(5)) { port.post(1) }
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "E BT BS BW AW P1@5 B BT BS BW AW X")
  }

  @Test("a message received ends a run that returns after a source", .rule(.r8))
  func handledSource() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let port = Port { _, message in log.write("P\(message.id)") }
      loop.add(port, forMode: .default)
      port.post(1)
      port.post(2)
      for _ in 0..<3 {
        log.write("\(loop.run(mode: .default, for: .milliseconds(10), returnAfterSourceHandled: true))")
      }
      time.stamp(log, "at")
      return log.text
    }
    #expect(log == "P1 handledSource P2 handledSource timedOut at10")
  }

  @Test("a timer that is always due and a port that always has a message do not starve each other", .rule(.r11, .m19))
  func noStarving() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let port = Port { port, message in
        log.write("P")
        port.post(Int(message.id))
      }
      loop.add(port, forMode: .default)
      port.post(1)
      loop.every(.seconds(1)) { timer in
        log.write("T")
        timer.deadline = time.instant(0)
        if log.count(of: "T") == 3 { loop.stop() }
      }.deadline = time.instant(0)
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      return log.text
    }
    #expect(log == "T P T P T stopped")
  }

  @Test("a port is equal only to itself")
  func identity() {
    let ports = [Port(), Port()]
    #expect(Set(ports).count == 2)
    #expect(ports[0] == ports[0] && ports[0] != ports[1])
    #expect(ports[0].reservedSpaceLength == 0)
  }
}

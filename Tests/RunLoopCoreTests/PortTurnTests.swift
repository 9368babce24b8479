// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Turns of ports", .timeLimit(.minutes(20)))
struct PortTurnTests {
  @Test(
    "a pass receives the messages that the port had when its turn began, and not those that come meanwhile",
    .rule(.r10, .m19))
  func batch() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      let port = Port { port, message in
        log.write("P\(message.id)")
        if message.id == 1 { port.post(4) }
      }
      for id in 1...3 { port.post(id) }
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "E BT BS BW AW P1 P2 P3 BT BS BW AW P4 BT BS BW AW X")
  }

  @Test("a run that returns after a source receives one message", .rule(.r10, .m19))
  func one() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, message in log.write("P\(message.id)") }
      for id in 1...2 { port.post(id) }
      loop.add(port, forMode: .default)
      for _ in 0..<3 { log.write("\(loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true))") }
      return log.text
    }
    #expect(log == "P1 handledSource P2 handledSource timedOut")
  }

  @Test("a turn has a limit, and ports with more messages take turns", .rule(.r11, .m19))
  func limit() {
    let turns = onVirtualTime { _, loop in
      let turns = Box<[String]>([])
      for name in ["A", "B"] {
        let port = Port { _, message in
          // The first and last message of each turn.
          if [1, 64, 100].contains(message.id) { turns.update { $0.append("\(name)\(message.id)") } }
        }
        loop.add(port, forMode: .default)
        for id in 1...100 { port.post(id) }
      }
      loop.run(mode: .default, for: .milliseconds(10))
      return turns.value
    }
    #expect(turns == ["A1", "A64", "B1", "B64", "A100", "B100"])
  }

  @Test("a stop ends a turn, and what is left is received by the next run", .rule(.m19))
  func stop() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, message in
        log.write("P\(message.id)")
        if message.id == 2 { loop.stop() }
      }
      loop.add(port, forMode: .default)
      for id in 1...4 { port.post(id) }
      for _ in 0..<2 { log.write("\(loop.run(mode: .default, for: .milliseconds(10)))") }
      return log.text
    }
    #expect(log == "P1 P2 stopped P3 P4 timedOut")
  }

  @Test("a port that leaves the mode in its turn is not called again there, and keeps its messages", .rule(.m19))
  func removal() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { port, message in
        log.write("P\(message.id)")
        if message.id == 1 { loop.remove(port, forMode: .default) }
      }
      loop.add(port, forMode: .default)
      loop.add(Port(), forMode: .default)
      for id in 1...3 { port.post(id) }
      loop.run(mode: .default, for: .milliseconds(10))
      log.write("\(port.waitingMessageCount)")
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "P1 2 P2 P3")
  }

  @Test("a port that is invalidated in its turn is not called again", .rule(.m19))
  func invalidation() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { port, message in
        log.write("P\(message.id)")
        if message.id == 1 { port.invalidate() }
      }
      loop.add(port, forMode: .default)
      for id in 1...3 { port.post(id) }
      loop.run(mode: .default, for: .milliseconds(10))
      log.write("\(port.droppedMessageCount)")
      return log.text
    }
    #expect(log == "P1 2")
  }

  @Test("a run nested in the handler receives the next message, and ends the turn", .rule(.r68, .m6, .m19))
  func nested() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log, [.beforeTimers])
      let port = Port { _, message in
        log.write("P\(message.id)(")
        if message.id == 1 {
          log.write("\(loop.run(mode: .default, for: .milliseconds(10), returnAfterSourceHandled: true))")
        }
        log.write(")")
      }
      loop.add(port, forMode: .default)
      for id in 1...4 { port.post(id) }
      loop.run(mode: .default, for: .milliseconds(20))
      return log.text
    }
    #expect(log == "BT P1( BT P2( ) handledSource ) BT P3( ) P4( ) BT")
  }

  @Test("of a port in two loops each message is received once, also within turns", .rule(.m19))
  func twoLoops() {
    let count = 5000
    let received = Box<[Int]>([])
    let port = Port(queueLimit: count) { _, message in received.update { $0.append(Int(message.id)) } }
    for id in 0..<count { port.post(id) }
    let threads = (0..<2).map { _ in
      startThread {
        RunLoop.current.add(port, forMode: .default)
        while port.waitingMessageCount > 0 { RunLoop.current.run(mode: .default, for: .zero) }
      }
    }
    for thread in threads { thread.result() }
    #expect(received.value.sorted() == Array(0..<count))
  }
}

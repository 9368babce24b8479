// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Where a port is", .timeLimit(.minutes(20)))
struct PortPlaceTests {
  @Test("in several modes, a message is received once, by the mode that gets to it", .rule(.r82, .m6))
  func manyModes() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, message in log.write("\(loop.currentMode?.rawValue ?? "none")\(message.id)") }
      loop.add(port, forMode: "A")
      loop.add(port, forMode: "B")
      port.post(1)
      port.post(2)
      for mode in ["A", "B", "A", "B"] as [RunLoop.Mode] {
        loop.run(mode: mode, for: .milliseconds(1), returnAfterSourceHandled: true)
      }
      return log.text
    }
    #expect(log == "A1 B2")
  }

  @Test("a port in the common modes is in each of them, until it is removed from them", .rule(.r101, .r104))
  func commonModes() throws {
    let log = try onVirtualTime { _, loop in
      Result {
        let log = Log()
        let port = Port { _, message in log.write("\(loop.currentMode?.rawValue ?? "none")\(message.id)") }
        loop.add(port, forMode: .common)
        try loop.addCommonMode("A")
        port.post(1)
        loop.run(mode: "A", for: .zero)
        loop.remove(port, forMode: .common)
        log.write("\(loop.contains(port, forMode: "A")) \(loop.contains(port, forMode: .default))")
        log.write("\(loop.run(mode: "A", for: .zero))")
        return log.text
      }
    }.get()
    #expect(log == "A1 false false finished")
  }

  @Test("in two loops, each message is received once, by whichever gets to it", .rule(.r71, .m6))
  func twoLoops() {
    let received = onNewThread {
      let received = Received(200)
      let first = RunLoop.current
      let port = Port { _, message in received.note(Int(message.id)) }
      first.add(port, forMode: .default)
      let other = startThread {
        let second = RunLoop.current
        second.add(port, forMode: .default)
        received.onLast = {
          first.stopForGood()
          second.stopForGood()
        }
        let sender = startThread { for id in 0..<200 { port.post(id) } }
        second.runUntilStopped()
        sender.result()
      }
      first.runUntilStopped()
      other.result()
      return (0..<200).map { received.count(of: $0) }
    }
    #expect(received == Array(repeating: 1, count: 200))
  }

  @Test("the first loop to check takes the message, and the other sleeps on without a pass", .rule(.r71, .m20))
  func sleepsOn() {
    let log = onVirtualTime { time, loop in
      let other = RunLoop(threadID: 0, waiter: time)
      defer { other.end() }
      let log = Log()
      loop.observe(log)
      let port = Port { _, message in log.write("P\(message.id)") }
      loop.add(port, forMode: .default)
      other.add(port, forMode: .default)
      time.at(.milliseconds(5)) {
        port.post(1)
        // The other loop's thread does this in its pass.
        if let taken = port.takeMessage() { port.receive(taken.message) }
      }
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "E BT BS BW P1 AW X")
  }
}

private final class Received: @unchecked Sendable {
  // Sendable: the counts are guarded by the lock; `onLast` is set before the first message is sent.
  private let lock = Lock()
  private var counts: [Int]
  private var left: Int
  var onLast: @Sendable () -> Void = {}

  init(_ total: Int) {
    counts = Array(repeating: 0, count: total)
    left = total
  }

  func note(_ id: Int) {
    let isLast = lock.withLock {
      counts[id] += 1
      left -= 1
      return left == 0
    }
    if isLast { onLast() }
  }

  func count(of id: Int) -> Int { lock.withLock { counts[id] } }
}

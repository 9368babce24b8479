// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A port's queue", .timeLimit(.minutes(20)))
struct PortQueueTests {
  @Test("a full queue rejects a message, and takes one when one was received")
  func limit() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port(queueLimit: 2) { _, message in log.write("P\(message.id)") }
      loop.add(port, forMode: .default)
      for id in 1...3 { log.write(port.trySend(id)) }
      loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      for id in 4...5 { log.write(port.trySend(id)) }
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "sent sent queueFull(limit:2) P1 sent queueFull(limit:2) P2 P4")
  }

  @Test("a queue has room for at least one message", arguments: [0, -5])
  func leastLimit(limit: Int) {
    let port = Port(queueLimit: limit) { _, _ in }
    #expect(port.queueLimit == 1)
    #expect(port.trySend(1) == "sent")
    #expect(port.trySend(2) == "queueFull(limit:1)")
  }

  @Test("a sender whose deadline has passed does not wait for room")
  func deadlineOver() {
    let port = Port(queueLimit: 1) { _, _ in }
    let past = SystemWaiter.shared.now.instant
    #expect(port.trySend(1, deadline: past) == "sent")
    #expect(port.trySend(2, deadline: past) == "timedOut(limit:1)")
  }

  @Test("senders waiting for room continue as the loop receives, each in order")
  func waitingSenders() {
    let seen = onNewThread {
      let seen = Log()
      let loop = RunLoop.current
      let port = Port(queueLimit: 1) { _, message in
        seen.write("\(message.id)")
        if message.id == 50 { loop.stop() }
      }
      loop.add(port, forMode: .default)
      let sender = startThread {
        for id in 1...50 { try? port.send(.init(id: UInt32(id)), deadline: .farFuture) }
      }
      loop.runUntilStopped()
      sender.result()
      return seen.text
    }
    #expect(seen == (1...50).map(String.init).joined(separator: " "))
  }

  @Test("port errors describe what is wrong")
  func errors() {
    #expect(PortError.invalid.description == "the port is invalid")
    #expect(PortError.queueFull(limit: 3).description == "the port's queue is full: 3 messages wait")
    #expect(
      PortError.timedOut(limit: 3).description == "the port's queue stayed full until the deadline: 3 messages wait")
  }

  @Test("a port that rejects reports an error at once, whatever the sender's deadline")
  func reject() {
    let port = Port(queueLimit: 1, whenFull: .reject) { _, _ in }
    #expect(port.overflowPolicy == .reject)
    #expect(port.trySend(1, deadline: .farFuture) == "sent")
    #expect(port.trySend(2, deadline: .farFuture) == "queueFull(limit:1)")
    #expect(port.waitingMessageCount == 1 && port.droppedMessageCount == 0)
  }

  @Test("a port that drops the oldest message accepts every message, and counts the dropped ones")
  func dropOldest() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port(queueLimit: 2, whenFull: .dropOldest) { _, message in log.write("P\(message.id)") }
      loop.add(port, forMode: .default)
      for id in 1...5 { log.write(port.trySend(id)) }
      log.write("\(port.waitingMessageCount) waiting \(port.droppedMessageCount) dropped")
      loop.run(mode: .default, for: .milliseconds(1))
      log.write("\(port.waitingMessageCount) waiting \(port.droppedMessageCount) dropped")
      return log.text
    }
    #expect(log == "sent sent sent sent sent 2 waiting 3 dropped P4 P5 0 waiting 3 dropped")
  }

  @Test("the contents of a dropped message are released by its successor's sender, with no lock held", .rule(.m10))
  func droppedPayload() {
    let log = Log()
    let port = Port(queueLimit: 1, whenFull: .dropOldest)
    do {
      let probe = Token {
        let waiting = onNewThread { port.waitingMessageCount }
        log.write("released, \(waiting) waiting")
      }
      try? port.send(.init(components: [.value(probe)]))
    }
    port.post(2)
    log.write("sent")
    #expect(log.text == "released, 1 waiting sent")
  }

  @Test("a message that is never received is counted as dropped")
  func nobody() {
    let dropped = onVirtualTime { _, loop in
      let port = Port()
      loop.add(port, forMode: .default)
      for id in 1...3 { port.post(id) }
      loop.run(mode: .default, for: .milliseconds(1))
      return port.droppedMessageCount
    }
    #expect(dropped == 3)
  }

  @Test("many senders that wait for one place each get it, and each sender's messages stay in order")
  func manyWaitingSenders() {
    let (senders, each) = (4, 100)
    let orders = onNewThread {
      let orders = Box<[[UInt32]]>(Array(repeating: [], count: senders))
      let loop = RunLoop.current
      let left = Box(senders * each)
      let port = Port(queueLimit: 1) { _, message in
        orders.value[Int(message.id) / 1000].append(message.id % 1000)
        left.value -= 1
        if left.value == 0 { loop.stop() }
      }
      loop.add(port, forMode: .default)
      let threads = (0..<senders).map { sender in
        startThread {
          (0..<each).allSatisfy { port.trySend(sender * 1000 + $0, deadline: .farFuture) == "sent" }
        }
      }
      loop.runUntilStopped()
      return threads.allSatisfy { $0.result() } ? orders.value : []
    }
    #expect(orders == Array(repeating: (0..<UInt32(each)).map { $0 }, count: senders))
  }

  @Test("a waiting sender whose deadline passes is notified, and its message is not sent")
  func timesOut() {
    let port = Port(queueLimit: 1) { _, _ in }
    port.post(1)
    let deadline = SystemWaiter.shared.now.instant.advanced(by: .milliseconds(2))
    #expect(port.trySend(2, deadline: deadline) == "timedOut(limit:1)")
    #expect(SystemWaiter.shared.now.instant >= deadline && port.waitingMessageCount == 1)
  }
}

@Suite("A port's queue, as a value")
struct PortQueueValueTests {
  private func offer(_ id: UInt32, to queue: inout PortQueue) -> String {
    switch queue.offer(Port.Message(id: id)) {
    case .taken: "taken"
    case .replaces(let oldest): "replaces\(oldest.id)"
    case .full(let mayWait): mayWait ? "wait" : "refused"
    case .closed: "closed"
    }
  }

  @Test(
    "each port policy handles one message too many as specified",
    arguments: [
      (Port.OverflowPolicy.wait, "taken taken wait wait | 0 taken 1 4"),
      (.reject, "taken taken refused refused | 0 taken 1 4"),
      (.dropOldest, "taken taken replaces0 replaces1 | 2 taken 3 4"),
    ])
  func policies(policy: Port.OverflowPolicy, expected: String) {
    var queue = PortQueue(limit: 2, policy: policy)
    var log = (0..<4).map { offer($0, to: &queue) } + ["|"]
    if let taken = queue.takeFirst() { log.append("\(taken.message.id)") }
    log.append(offer(4, to: &queue))
    while let taken = queue.takeFirst() { log.append("\(taken.message.id)") }
    let (isEmpty, dropped) = (queue.isEmpty, queue.dropped)
    #expect(log.joined(separator: " ") == expected)
    #expect(isEmpty && dropped == (policy == .dropOldest ? 2 : 0))
  }

  @Test("a closed queue accepts nothing, and the waiting messages are counted and returned")
  func closed() {
    var queue = PortQueue(limit: 3, policy: .dropOldest)
    var remains = MoveQueue<Port.Message>()
    for id in 0..<UInt32(3) { _ = offer(id, to: &queue) }
    queue.close(&remains)
    let count = remains.count
    let (dropped, outcome) = (queue.dropped, offer(3, to: &queue))
    let isEmpty = queue.takeFirst() == nil
    #expect(count == 3 && dropped == 3 && outcome == "closed" && isEmpty)
  }
}

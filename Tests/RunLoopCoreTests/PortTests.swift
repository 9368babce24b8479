import Testing

@testable import RunLoopCore

@Suite("Ports", .timeLimit(.minutes(5)))
struct PortTests {
  // R25
  @Test("a port keeps a loop alive, message or none")
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

  // R2, R50
  @Test("a message wakes the loop by itself, and is received after the wait, before the blocks that it posts")
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

  // R10
  @Test("of several messages, a pass receives one")
  func onePerPass() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.observe(log)
      let port = Port { _, message in log.write("P\(message.id)") }
      for id in 1...3 { port.post(id) }
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "E BT BS BW AW P1 BT BS BW AW P2 BT BS BW AW P3 BT BS BW AW X")
  }

  // R8
  @Test("a message received ends a run that returns after a source")
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

  // R11, M19
  @Test("ports with messages take turns")
  func turns() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      for name in ["A", "B"] {
        let port = Port { _, message in log.write("\(name)\(message.id)") }
        loop.add(port, forMode: .default)
        for id in 1...3 { port.post(id) }
      }
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "A1 B1 A2 B2 A3 B3")
  }

  // R11, M19
  @Test("a timer that is always due and a port that always has a message do not starve each other")
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

  // M6
  @Test("a message carries its number and its parts, and waits for a loop")
  func content() {
    let message = Port.Message(id: 7, components: [[1, 2], [], [3]])
    let received = onVirtualTime { _, loop in
      let box = Box<Port.Message?>(nil)
      let port = Port { _, message in box.value = message }
      try? port.send(message)
      loop.add(port, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      return box.value
    }
    #expect(received == message)
  }

  @Test("a full queue refuses a message, and takes one when one was received")
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

  @Test("a sender whose deadline is over does not wait for room")
  func deadlineOver() {
    let port = Port(queueLimit: 1) { _, _ in }
    let past = SystemWaiter.shared.now.instant
    #expect(port.trySend(1, deadline: past) == "sent")
    #expect(port.trySend(2, deadline: past) == "timedOut(limit:1)")
  }

  @Test("senders that wait for room go on as the loop receives, each in its order")
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

  // M14
  @Test("a sender that waits for room gets an error when the port ends")
  func invalidatedUnderSender() {
    let port = Port(queueLimit: 1) { _, _ in }
    port.post(1)
    let sender = startThread { port.trySend(2, deadline: .farFuture) }
    port.invalidate()
    #expect(sender.result() == "invalid")
  }

  // R74, M21, M22, M23
  @Test("invalidate takes a port out of its modes, drops its messages, releases its handler and ends the run")
  func invalidate() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let port = { [token = Token(log)] in Port { _, _ in token.touch() } }()
      loop.add(port, forMode: .common)
      loop.add(port, forMode: "A")
      time.at(.milliseconds(5)) { port.invalidate() }
      log.write("\(loop.run(mode: .default, for: .milliseconds(10)))")
      time.stamp(log, "at")
      for mode in [.default, "A", .common] as [RunLoop.Mode] { log.write("\(loop.contains(port, forMode: mode))") }
      port.invalidate()
      log.write("\(port.isValid) \(loop.add(port, forMode: .default)) \(port.trySend(2))")
      return log.text
    }
    #expect(log == "released finished at5 false false false false false invalid")
  }

  // M22
  @Test("a port that is invalidated by its own message keeps its handler until it has returned, and drops the rest")
  func invalidateInside() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      do {
        let token = Token(log)
        let port = Port { [token] port, message in
          log.write("P\(message.id)")
          port.invalidate()
          token.touch()
          log.write("end")
        }
        port.post(1)
        port.post(2)
        loop.add(port, forMode: .default)
      }
      log.write("\(loop.run(mode: .default, for: .milliseconds(10)))")
      return log.text
    }
    #expect(log == "P1 end released finished")
  }

  // R82, M6
  @Test("in several modes, a message is received once, by the mode that gets to it")
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

  // R101, R104
  @Test("a port in the common modes is in each of them, until it is removed from them")
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

  // R71, M6
  @Test("in two loops, each message is received once, by whichever gets to it")
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

  // R71, M20
  @Test("the first loop to look takes the message; the other sleeps on without a pass")
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
        // What the other loop's thread does in its pass.
        if let message = port.takeMessage() { port.receive(message) }
      }
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(log == "E BT BS BW P1 AW X")
  }

  // R68, M6
  @Test("a run nested in the handler receives the next message")
  func nested() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port { _, message in
        log.write("P\(message.id)(")
        if message.id == 1 {
          log.write("\(loop.run(mode: .default, for: .milliseconds(10), returnAfterSourceHandled: true))")
        }
        log.write(")")
      }
      loop.add(port, forMode: .default)
      port.post(1)
      port.post(2)
      loop.run(mode: .default, for: .milliseconds(20))
      return log.text
    }
    #expect(log == "P1( P2( ) handledSource )")
  }

  @Test("a subclass receives its messages")
  func subclassReceives() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = ReceivingPort(log)
      loop.add(port, forMode: .default)
      try? port.send(.init(id: 3, components: [[1]]))
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "received3")
  }

  @Test("a subclass may bring its own source instead of itself")
  func subclassSource() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = SourcePort(log)
      log.write("\(loop.add(port, forMode: .default)) \(loop.contains(port, forMode: .default))")
      port.source.signal()
      log.write("\(loop.run(mode: .default, for: .milliseconds(1)))")
      loop.remove(port, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(1)))")
      return log.text
    }
    #expect(
      log == "schedule:kCFRunLoopDefaultMode true false performed timedOut remove:kCFRunLoopDefaultMode finished")
  }

  @Test("ports are equal to themselves only")
  func identity() {
    let ports = [Port(), Port()]
    #expect(Set(ports).count == 2)
    #expect(ports[0] == ports[0] && ports[0] != ports[1])
    #expect(ports[0].reservedSpaceLength == 0)
  }

  @Test("errors say what is the matter")
  func errors() {
    #expect(PortError.invalid.description == "the port is invalid")
    #expect(PortError.queueFull(limit: 3).description == "the port's queue is full: 3 messages wait")
    #expect(
      PortError.timedOut(limit: 3).description == "the port's queue stayed full until the deadline: 3 messages wait")
  }
}

/// Counts messages that several threads receive.
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

private final class ReceivingPort: Port, @unchecked Sendable {
  // Sendable: a constant.
  private let log: Log

  init(_ log: Log) {
    self.log = log
    super.init()
  }

  override func receive(_ message: Message) { log.write("received\(message.id)") }
}

private final class SourcePort: Port, @unchecked Sendable {
  // Sendable: constants.
  let source: RunLoop.Source
  private let log: Log

  init(_ log: Log) {
    self.log = log
    source = RunLoop.Source { log.write("performed") }
    super.init()
  }

  override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
    log.write("schedule:\(mode)")
    loop.add(source, forMode: mode)
  }

  override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
    log.write("remove:\(mode)")
    loop.remove(source, forMode: mode)
  }
}

extension Port {
  /// Sends a message that must find room.
  fileprivate func post(_ id: Int) {
    let outcome = trySend(id)
    precondition(outcome == "sent", outcome)
  }

  /// Sends a message and says in one word what came of it.
  fileprivate func trySend(_ id: Int, deadline: SuspendingClock.Instant? = nil) -> String {
    do {
      try send(.init(id: UInt32(id)), deadline: deadline)
      return "sent"
    } catch {
      return switch error {
      case .invalid: "invalid"
      case .queueFull(let limit): "queueFull(limit:\(limit))"
      case .timedOut(let limit): "timedOut(limit:\(limit))"
      }
    }
  }
}

extension SuspendingClock.Instant {
  /// A deadline that is not meant to come.
  fileprivate static var farFuture: Self { SystemWaiter.shared.now.instant.advanced(by: .seconds(3600)) }
}

// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A port that becomes invalid", .timeLimit(.minutes(20)))
struct PortInvalidationTests {
  @Test("a sender waiting for room gets an error when the port ends", .rule(.m14))
  func invalidatedUnderSender() {
    let port = Port(queueLimit: 1) { _, _ in }
    port.post(1)
    let sender = startThread { port.trySend(2, deadline: .farFuture) }
    port.invalidate()
    #expect(sender.result() == "invalid")
  }

  @Test(
    "invalidating a port removes it from its modes, drops its messages and releases its handler without waking a loop",
    .rule(.r74, .r28c, .m21, .m22))
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
      log.write("\(port.isValid) \(loop.add(port, forMode: .default) as Bool) \(port.trySend(2))")
      return log.text
    }
    #expect(log == "released timedOut at10 false false false false false invalid")
  }

  @Test(
    "a port invalidated by its own message keeps its handler until it returns, and drops the rest",
    .rule(.m22))
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

  @Test("all senders waiting for room get an error when the port ends", .rule(.m14))
  func manyUnderSenders() {
    let port = Port(queueLimit: 1) { _, _ in }
    port.post(1)
    let senders = (0..<4).map { _ in startThread { port.trySend(2, deadline: .farFuture) } }
    port.invalidate()
    #expect(senders.map { $0.result() } == Array(repeating: "invalid", count: 4))
  }

  @Test(
    "waiting messages are dropped, counted and released without a lock, before any notification", .rule(.m10, .m14))
  func dropped() {
    let log = Log()
    let port = TellingPort(log)
    do {
      let probe = Token { log.write("released \(onNewThread { port.droppedMessageCount })") }
      try? port.send(.init(components: [.value(probe)]))
    }
    port.post(2)
    port.invalidate()
    #expect(log.text == "released 2 told")
  }

  @Test(
    "a subclass is notified once on the invalidating thread, outside modes and locks, before observers",
    .rule(.m10))
  func told() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = TellingPort(log, loop)
      loop.add(port, forMode: .default)
      loop.add(port, forMode: .common)
      port.observeInvalidation { port in log.write("first \(port.isValid)") }
      port.observeInvalidation { _ in log.write("second") }
      onNewThread {
        port.thread.value = RunLoop.callingThreadID
        port.invalidate()
        port.invalidate()
      }
      return log.text
    }
    #expect(log == "told here false false first false second")
  }

  @Test("an observer that is added when the port is already invalid is notified at once")
  func toldLate() {
    let log = Log()
    let port = Port()
    port.invalidate()
    port.observeInvalidation { _ in log.write("told") }
    #expect(log.text == "told")
  }

  @Test("an observer is released after its notification, on its cancellation, and with the port", .rule(.m22))
  func observersReleased() {
    let log = Log()
    func observer(_ name: String, of port: Port) -> Port.InvalidationObserver {
      let token = Token(log, name + " released")
      return port.observeInvalidation { [token] _ in
        token.touch()
        log.write(name)
      }
    }
    do {
      let port = Port()
      let cancelled = observer("a", of: port)
      let kept = observer("b", of: port)
      cancelled.cancel()
      cancelled.cancel()
      port.invalidate()
      kept.cancel()
      _ = observer("c", of: Port())
    }
    #expect(log.text == "a released b b released c released")
  }

  @Test("an observer may cancel another, observe again and invalidate again")
  func reentrant() {
    let log = Log()
    let port = Port()
    let second = Box<Port.InvalidationObserver?>(nil)
    port.observeInvalidation { port in
      log.write("first")
      second.value?.cancel()
      port.invalidate()
      port.observeInvalidation { _ in log.write("third") }
    }
    second.value = port.observeInvalidation { _ in log.write("second") }
    port.invalidate()
    #expect(log.text == "first third")
  }

  @Test("in a race of senders, observers and the end, all are notified", .rule(.m2, .m14))
  func race() {
    for _ in 0..<50 {
      let told = Log()
      let port = Port(queueLimit: 1) { _, _ in }
      let senders = (0..<2).map { _ in
        startThread { [port.trySend(1, deadline: .farFuture), port.trySend(2, deadline: .farFuture)] }
      }
      let observer = startThread { _ = port.observeInvalidation { _ in told.write("told") } }
      startThread { port.invalidate() }.result()
      observer.result()
      // At most one message was accepted, and then dropped.
      let sent = senders.flatMap { $0.result() }.count { $0 == "sent" }
      #expect(sent <= 1 && port.droppedMessageCount == sent && port.waitingMessageCount == 0)
      #expect(told.text == "told")
    }
  }
}

private final class TellingPort: Port, @unchecked Sendable {
  // Sendable: immutable.
  let thread = Box<Int32?>(nil)
  private let log: Log
  private let loop: RunLoop?

  init(_ log: Log, _ loop: RunLoop? = nil) {
    self.log = log
    self.loop = loop
    super.init()
  }

  override func didBecomeInvalid() {
    log.write("told")
    guard let loop else { return }
    log.write(thread.value == RunLoop.callingThreadID ? "here" : "elsewhere")
    let places = onNewThread { [.default, .common].map { self.isIn(loop, $0) } }
    for place in places { log.write("\(place)") }
  }

  private func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool { loop.contains(self, forMode: mode) }
}

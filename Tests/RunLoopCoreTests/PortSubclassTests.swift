// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Subclasses of Port", .timeLimit(.minutes(20)))
struct PortSubclassTests {
  @Test("a port subclass receives its messages")
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

  @Test("a port subclass may provide its own source instead of itself")
  func subclassSource() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = SourcePort(log)
      log.write("\(loop.add(port, forMode: .default) as Bool) \(loop.contains(port, forMode: .default))")
      port.source.signal()
      log.write("\(loop.run(mode: .default, for: .milliseconds(1)))")
      loop.remove(port, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(1)))")
      return log.text
    }
    #expect(
      log == "schedule:kCFRunLoopDefaultMode true true performed timedOut remove:kCFRunLoopDefaultMode finished")
  }

  @Test(
    "a port is scheduled once in each mode that it is added to, and removed only where it was added", .rule(.r72, .r73))
  func scheduledOnce() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = SourcePort(log)
      loop.remove(port, forMode: "A")
      for _ in 0..<2 { loop.add(port, forMode: "A") }
      loop.add(port, forMode: .common)
      loop.remove(port, forMode: "A")
      loop.remove(port, forMode: "A")
      loop.add(port, forMode: "A")
      return log.text
    }
    #expect(log == "schedule:A schedule:kCFRunLoopCommonModes remove:A schedule:A")
  }

  @Test("a port scheduled or removed by its own method can be removed and added by the loop's methods")
  func ownMethods() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port = Port()
      port.schedule(in: loop, forMode: .default)
      log.write("\(loop.contains(port, forMode: .default))")
      loop.remove(port, forMode: .default)
      log.write("\(loop.contains(port, forMode: .default))")
      loop.add(port, forMode: .default)
      port.remove(from: loop, forMode: .default)
      log.write("\(loop.contains(port, forMode: .default))")
      loop.add(port, forMode: .default)
      log.write("\(loop.contains(port, forMode: .default))")
      return log.text
    }
    #expect(log == "true false false true")
  }

  @Test(
    "a loop holds a port that brings its own source until it is removed, invalidated, or the thread ends", .rule(.r76))
  func held() {
    let ports = onVirtualTime { _, loop in
      func added() -> WeakBox<SourcePort> {
        let port = SourcePort(Log())
        loop.add(port, forMode: .default)
        loop.add(port, forMode: "A")
        return WeakBox(port)
      }
      let (removed, invalidated, left) = (added(), added(), added())
      #expect(removed.object != nil && invalidated.object != nil && left.object != nil)
      removed.object.map { loop.remove($0, forMode: .default) }
      #expect(removed.object != nil)
      removed.object.map { loop.remove($0, forMode: "A") }
      invalidated.object?.invalidate()
      #expect(removed.object == nil && invalidated.object == nil && left.object != nil)
      return left
    }
    #expect(ports.object == nil)
  }

  @Test("a loop holds a port of its own kind as long as it is in a mode", .rule(.r76))
  func heldPlain() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let added = {
        let port = Port()
        loop.add(port, forMode: .default)
        return WeakBox(port)
      }()
      log.write("\(added.object == nil)")
      added.object?.invalidate()
      log.write("\(added.object == nil)")
      return log.text
    }
    #expect(log == "false true")
  }

  @Test("a port with its own way of becoming invalid can leave its loops")
  func leaveLoops() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let (port, other) = (SourcePort(log), Port())
      loop.add(port, forMode: .default)
      loop.add(other, forMode: .common)
      for port in [port, other] { port.leaveLoops() }
      log.write("\(loop.contains(port, forMode: .default)) \(loop.contains(other, forMode: .default)) \(other.isValid)")
      return log.text
    }
    #expect(log == "schedule:kCFRunLoopDefaultMode false false true")
  }

  @Test("the loop of a thread that has ended rejects a port and does not hold it", .rule(.r117, .m21))
  func endedLoop() {
    let log = Log()
    let loop = onVirtualTime { _, loop in loop }
    let box = {
      let port = SourcePort(log)
      #expect(!loop.add(port, forMode: .default) && !loop.contains(port, forMode: .default))
      return WeakBox(port)
    }()
    #expect(box.object == nil && log.text == "")
  }

  @Test("a port subclass may limit its queue, send in its own way, and pass itself the message")
  func sends() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let port: Port = CountingPort(log)
      loop.add(port, forMode: .default)
      for id in 1...3 { log.write(port.trySend(id)) }
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "send1 sent send2 sent send3 queueFull(limit:2) received1 received2")
  }
}

private final class ReceivingPort: Port, @unchecked Sendable {
  // Sendable: immutable.
  private let log: Log

  init(_ log: Log) {
    self.log = log
    super.init()
  }

  override func receive(_ message: Message) { log.write("received\(message.id)") }
}

private final class SourcePort: Port, @unchecked Sendable {
  // Sendable: immutable.
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

private final class CountingPort: Port, @unchecked Sendable {
  // Sendable: immutable.
  private let log: Log

  init(_ log: Log) {
    self.log = log
    super.init(queueLimit: 2, whenFull: .reject)
  }

  override func send(_ message: Message, deadline: SuspendingClock.Instant?) throws(PortError) {
    log.write("send\(message.id)")
    try super.send(message, deadline: deadline)
  }

  override func receive(_ message: Message) { log.write("received\(message.id)") }
}

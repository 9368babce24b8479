// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import Testing
import TestSupport

/// A thread with stored members whose names this package's class has in addition to Foundation's.
private final class LoopThread: Thread, @unchecked Sendable {
  // Sendable: set before the start and read after the end.
  var runLoop: String? = "own loop"
  var configuration = 7
  var startError = "own error"
  var rejections = ["own refusal"]
  private(set) var calls = ""

  func join() { calls += "join " }
  func tryStart() { calls += "tryStart" }
  override func main() { name = "own" }
}

/// A port with stored members whose names this package's class has in addition to Foundation's.
private final class Mailbox: Port, @unchecked Sendable {
  // Sendable: used by one thread.
  var queueLimit = "own limit"
  var overflowPolicy = 1.5
  var droppedMessageCount = ["own"]
  var waitingMessageCount: Int? = nil
}

/// Threads and ports that are equal if their numbers are.
private final class Numbered: Thread, @unchecked Sendable {
  // Sendable: the number does not change, and the rest is read after the thread has ended.
  let number: Int
  private(set) var seen: Thread?
  private(set) var own: ObjectIdentifier?

  init(_ number: Int) {
    self.number = number
    super.init()
  }

  override func main() {
    seen = Thread.current
    Thread.current.threadDictionary["own"] = ObjectIdentifier(self)
    own = Thread.current.threadDictionary["own"] as? ObjectIdentifier
  }

  override var description: String { "thread no. \(number)" }
  override var hash: Int { number }
  override func isEqual(_ object: Any?) -> Bool { (object as? Numbered)?.number == number }
}

private final class NumberedPort: Port, @unchecked Sendable {
  // Sendable: the number does not change.
  let number: Int

  init(_ number: Int) {
    self.number = number
    super.init()
  }

  override var description: String { "port no. \(number)" }
  override var hash: Int { number }
  override func isEqual(_ object: Any?) -> Bool { (object as? NumberedPort)?.number == number }
}

private func members<Worker: Thread>(_ worker: Worker) -> (Thread.Configuration, ThreadError?, RunLoop?) {
  (worker.configuration, worker.startError, worker.runLoop)
}

@Suite("Members of subclasses of threads and ports", .timeLimit(.minutes(20)))
struct SubclassMemberTests {
  @Test("a thread's own members coexist with ours, which are visible through Thread")
  func thread() throws {
    let own = LoopThread()
    own.configuration = 8
    own[keyPath: \LoopThread.configuration] += 1
    own.join()
    own.tryStart()
    #expect(own.calls == "join tryStart")
    #expect((own.runLoop, own.configuration, own.startError) == ("own loop", 9, "own error"))
    #expect(own.rejections == ["own refusal"])

    let seen: Thread = own
    var configuration = seen.configuration
    configuration.stackSize = 1 << 20
    seen.configuration = configuration
    #expect(own.stackSize == 1 << 20)
    #expect(seen[keyPath: \Thread.configuration].stackSize == 1 << 20)
    #expect(seen.startError == nil)
    #expect(seen.runLoop != nil)
    try seen.tryStart()
    try seen.join()
    #expect(seen.isFinished)
    #expect(own.name == "own")
    #expect(seen.rejections.isEmpty)
    #expect(throws: ThreadError.self) { try seen.tryStart() }
    #expect(own.configuration == 9)
  }

  @Test("generic code that only knows of a thread sees our members")
  func generic() {
    let own = LoopThread()
    own.stackSize = 1 << 20
    let (configuration, startError, runLoop) = members(own)
    #expect(configuration.stackSize == 1 << 20)
    #expect(startError == nil)
    #expect(runLoop != nil)
  }

  @Test("a port's own members coexist with ours, which are visible through Port")
  func port() throws {
    let own = Mailbox()
    own[keyPath: \Mailbox.queueLimit] += "!"
    #expect((own.queueLimit, own.overflowPolicy, own.waitingMessageCount) == ("own limit!", 1.5, nil))
    #expect(own.droppedMessageCount == ["own"])
    let seen: Port = own
    try seen.send(.init(id: 1, components: []))
    #expect(seen.waitingMessageCount == 1)
    #expect(seen[keyPath: \Port.waitingMessageCount] == 1)
    seen.invalidate()
    #expect(seen.droppedMessageCount == 1)
    #expect(seen.queueLimit == Port().queueLimit)
    #expect(own.droppedMessageCount == ["own"])
  }

  @Test("a subclass defines its description and equality, which collections use")
  func identity() {
    let threads: [Thread] = [Numbered(1), Numbered(1), Numbered(2)]
    #expect(threads[0] == threads[1])
    #expect(threads[0] != threads[2])
    #expect(Set(threads).count == 2)
    #expect("\(threads[0])" == "thread no. 1")
    let ports: [Port] = [NumberedPort(1), NumberedPort(1), NumberedPort(2)]
    #expect(ports[0] == ports[1])
    #expect(ports[0] != ports[2])
    #expect(Set(ports).count == 2)
    #expect("\(ports[0])" == "port no. 1")
    // Without an override, they are equal only to themselves.
    #expect(Set([Thread(), Thread()]).count == 2)
    #expect(Port() != Port())
  }

  @Test("equal ports are separate items of a loop")
  func equalPorts() throws {
    let log = Log()
    onVirtualTime { _, loop in
      let ports = [NumberedPort(1), NumberedPort(1)]
      let delegates = ["a", "b"].map { name in ClosureDelegate { _ in log.write(name) } }
      for (port, delegate) in zip(ports, delegates) {
        port.setDelegate(delegate)
        loop.add(port, forMode: .default)
      }
      for port in ports { try? port.send(.init(id: 1, components: [])) }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      // One that leaves or ends does not affect the others.
      loop.remove(ports[0], forMode: .default)
      for port in ports { try? port.send(.init(id: 2, components: [])) }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      ports[1].invalidate()
      log.write("\(ports[0].isValid) \(loop.contains(ports[1], forMode: .default))")
      loop.add(ports[0], forMode: .default)
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log.text == "a b timedOut b timedOut true false a timedOut")
  }

  @Test("equal threads run separately")
  func equalThreads() throws {
    let threads = [Numbered(1), Numbered(1)]
    for thread in threads { thread.start() }
    for thread in threads { try thread.join() }
    #expect(threads.allSatisfy { $0.isFinished && $0.seen === $0 && $0.own == ObjectIdentifier($0) })
    let (first, second) = (Numbered(2), Numbered(2))
    first.cancel()
    #expect(!second.isCancelled)
    second.start()
    try second.join()
    #expect(!first.isFinished)
  }
}

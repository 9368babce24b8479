// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Message ports", .timeLimit(.minutes(20)))
struct MessagePortTests {
  @Test("a request is received on the loop's thread, and its reply is returned to a blocked thread")
  func request() throws {
    let directory = try PortDirectory()
    let thread = Box<Int32>(0)
    let server = try PortServer(directory) { request in
      thread.value = RunLoop.callingThreadID
      return MessagePort.Reply([UInt8(truncatingIfNeeded: request.id)] + request.bytes)
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let reply = try remote.send(id: 7, bytes: [1, 2], receiveTimeout: .unlimited)
    #expect(reply?.bytes == [7, 1, 2])
    #expect(thread.value == server.loop.threadID)
    #expect(remote.peer.process == getpid())
    #expect(remote.peer.isSameUser)
  }

  @Test("a request that gets no reply reports that immediately", arguments: [true, false])
  func noReply(keeps: Bool) throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { _ in nil }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 7, receiveTimeout: .unlimited, replyMode: keeps ? "reply" : nil) == nil)
    #expect(server.port.statistics.receivedCount == 1)
  }

  @Test("while it waits, the caller's loop runs in the reply mode only")
  func replyMode() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let log = Box<[String]>([])
    let reply = onNewThread { () -> [UInt8]? in
      let loop = RunLoop.current
      loop.perform(inModes: ["reply"]) { log.update { $0.append("reply mode") } }
      loop.perform(inModes: [.default]) { log.update { $0.append("default mode") } }
      guard let remote = try? MessagePort.Remote(name: "a", directory: directory.place) else { return nil }
      return try? remote.send(id: 1, bytes: [5], receiveTimeout: .unlimited, replyMode: "reply")?.bytes
    }
    #expect(reply == [5])
    #expect(log.value == ["reply mode"])
    #expect(server.port.connectionCount <= 1)
  }

  @Test("messages of one sender are received in order, whatever their sizes")
  func order() throws {
    let directory = try PortDirectory()
    let received = Box<[String]>([])
    let server = try PortServer(directory) { request in
      received.update { $0.append("\(request.id):\(request.bytes.count)") }
      return nil
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let limit = MessageFrame.inlineLimit
    for (id, size) in [0, 1, limit, limit + 1, 1 << 20, 3].enumerated() {
      try remote.send(id: Int32(id), bytes: [UInt8](repeating: 7, count: size))
    }
    try remote.awaitConfirmations(timeout: .unlimited)
    #expect(received.value == ["0:0", "1:1", "2:\(limit)", "3:\(limit + 1)", "4:\(1 << 20)", "5:3"])
    #expect(remote.statistics == .init(sentCount: 6, confirmedCount: 6))
    #expect(server.port.statistics.receivedCount == 6)
  }

  // 992 bytes plus the header is the longest packet that is copied when it is sent.
  @Test(
    "payloads of any size arrive unchanged, in both directions",
    arguments: [0, 1, 991, 992, 993, 32 * 1024, 32 * 1024 + 1, 5 << 20])
  func sizes(size: Int) throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { MessagePort.Reply($0.bytes.reversed()) }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    var bytes = [UInt8](repeating: 0, count: size)
    for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: index &* 31 >> 3) }
    let reply = try remote.send(id: 1, bytes: bytes, receiveTimeout: .unlimited)
    #expect(reply?.bytes == bytes.reversed())
    #expect(server.port.isValid)
  }

  @Test("a port serves the modes that it was added to, and the common ones")
  func modes() throws {
    let directory = try PortDirectory()
    let log = onNewThread { () -> [String] in
      let loop = RunLoop.current
      let log = Box<[String]>([])
      guard
        let port = try? MessagePort.Local(
          name: "a", directory: directory.place,
          handler: { request in
            log.update { $0.append("\(request.id)") }
            return nil
          }), let remote = try? MessagePort.Remote(name: "a", directory: directory.place)
      else { return [] }
      func places() {
        log.update { $0.append("\(loop.contains(port, forMode: "m")) \(loop.contains(port, forMode: .common))") }
      }
      try? loop.addCommonMode("common")
      places()
      try? loop.add(port, forMode: "m")
      try? loop.add(port, forMode: "m")
      places()
      _ = try? remote.send(id: 1)
      log.update { $0.append("\(loop.run(mode: .default, for: .zero))") }
      // First the connection, then the message.
      for _ in 0..<2 { loop.run(mode: "m", for: .unlimited, returnAfterSourceHandled: true) }
      loop.remove(port, forMode: "m")
      places()
      log.update { $0.append("\(loop.run(mode: "m", for: .unlimited))") }
      try? loop.add(port, forMode: .common)
      places()
      _ = try? remote.send(id: 2)
      loop.run(mode: "common", for: .unlimited, returnAfterSourceHandled: true)
      port.invalidate()
      places()
      log.update { $0.append("\(loop.run(mode: "common", for: .unlimited))") }
      return log.value
    }
    #expect(
      log == [
        "false false", "true false", "finished", "1", "false false", "finished", "false true", "2", "false false",
        "finished",
      ])
  }

  @Test("an unreferenced port is released with the loop that kept it")
  func release() throws {
    let directory = try PortDirectory()
    let name = onNewThread { () -> [String] in
      guard let port = try? MessagePort.Local(name: "a", directory: directory.place, handler: { _ in nil }) else {
        return []
      }
      try? RunLoop.current.add(port, forMode: .default)
      return directory.entries
    }
    #expect(name == ["a", "a.lock"])
    #expect(directory.entries.isEmpty)
  }

  @Test("a handler may send through a port, while its own loop runs in the reply mode")
  func nested() throws {
    let directory = try PortDirectory()
    let inner = try PortServer(directory, name: "b") { MessagePort.Reply($0.bytes + [2]) }
    let outer = try PortServer(directory) { request in
      guard let remote = try? MessagePort.Remote(name: "b", directory: directory.place) else { return nil }
      return (try? remote.send(id: 1, bytes: request.bytes, receiveTimeout: .unlimited, replyMode: "inner")) ?? nil
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)?.bytes == [1, 2])
    #expect(inner.port != outer.port)
  }

  @Test("many threads may send through one port at once, and each gets its own reply")
  func threads() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let threads = (0..<8).map { thread in
      startThread { () -> Int in
        var right = 0
        for turn in 0..<200 {
          let bytes = [UInt8(thread), UInt8(turn)]
          let mode: RunLoop.Mode? = thread % 2 == 0 ? nil : "reply"
          let reply = try? remote.send(id: 1, bytes: bytes, receiveTimeout: .unlimited, replyMode: mode)
          if reply?.bytes == bytes { right += 1 }
        }
        return right
      }
    }
    #expect(threads.map { $0.result() } == Array(repeating: 200, count: 8))
    #expect(server.port.statistics.replyCount == 1600)
  }

  @Test("ports have descriptions, and are equal to themselves only")
  func description() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let other = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(server.port.debugDescription.contains("name = a, valid = Yes"))
    #expect(
      remote.debugDescription.hasSuffix("name = a, valid = Yes, peer = \(getpid()), pending = 0, unconfirmed = 0}"))
    #expect(Set([remote, other, remote]).count == 2)
    #expect(Set([server.port, server.port]).count == 1)
  }
}

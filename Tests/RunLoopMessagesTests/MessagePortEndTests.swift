// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

@testable import RunLoopCore
import class RunLoopCore.RunLoop
import TestSupport
@testable import RunLoopMessages

@Suite("The ends of message ports", .timeLimit(.minutes(20)))
struct MessagePortEndTests {
  @Test("a request pending when the port ends fails with the reason, in every way of waiting")
  func pending() async throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    func ask(_ mode: RunLoop.Mode?) -> StartedThread<MessagePortError?> {
      startThread {
        portError { () throws(MessagePortError) in
          try remote.send(id: 1, receiveTimeout: .unlimited, replyMode: mode)
        }
      }
    }
    let threads = [ask(nil), ask(nil), ask("reply"), ask("reply")]
    async let task = Task { () -> MessagePortError? in
      do throws(MessagePortError) {
        _ = try await remote.request(id: 1)
        return nil
      } catch { return error }
    }.value
    let requests = port.requests.makeAsyncIterator()
    var taken: [MessagePort.Request?] = []
    for _ in 0..<5 { taken.append(await requests.next()) }
    let told = Box(0)
    port.observeInvalidation { _ in told.update { $0 += 1 } }
    try remote.observeInvalidation { _ in told.update { $0 += 10 } }
    port.invalidate()
    for thread in threads { #expect(thread.result() == .peerClosed) }
    #expect(await task == .peerClosed)
    waitUntil { told.value == 11 }
    #expect(!port.isValid && !remote.isValid)
    #expect(await requests.next() == nil)
    #expect(taken.count == 5)
    try remote.observeInvalidation { _ in told.update { $0 += 100 } }
    port.observeInvalidation { _ in told.update { $0 += 1000 } }
    #expect(told.value == 1111)
    #expect(portError { () throws(MessagePortError) in try remote.send(id: 1) } == .peerClosed)
  }

  @Test("a remote port that is invalidated ends its own requests")
  func invalidated() throws {
    let directory = try PortDirectory()
    let isThere = Box(false)
    let mayGo = Box(false)
    let server = try PortServer(directory) { _ in
      isThere.value = true
      waitUntil { mayGo.value }
      return nil
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let thread = startThread {
      portError { () throws(MessagePortError) in try remote.send(id: 1, receiveTimeout: .unlimited) }
    }
    waitUntil { isThere.value }
    remote.invalidate()
    #expect(thread.result() == .invalid)
    mayGo.value = true
    waitUntil { server.port.connectionCount == 0 }
    #expect(server.port.statistics.receivedCount == 1)
  }

  @Test("unconfirmed messages are reported once each, in order")
  func undelivered() throws {
    let directory = try PortDirectory()
    let lost = Box<[Int32]>([])
    // No loop serves the port.
    let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    let remote = try MessagePort.Remote(
      name: "a", directory: directory.place, undelivered: { one in lost.update { $0.append(one.id) } })
    for id in 0..<5 { try remote.send(id: Int32(id)) }
    port.invalidate()
    waitUntil { lost.value.count == 5 }
    #expect(lost.value == [0, 1, 2, 3, 4])
    #expect(portError { () throws(MessagePortError) in try remote.awaitConfirmations() } == .peerClosed)
    #expect(remote.statistics.undeliveredCount == 5)
  }

  @Test("a reply whose sender has ended is counted as dropped, once, however it ends", arguments: [0, 100, 5 << 20])
  func dropped(size: Int) throws {
    let directory = try PortDirectory()
    let mayReply = Latch()
    let server = try PortServer(
      directory,
      handler: { _ in
        mayReply.wait()
        return MessagePort.Reply([UInt8](repeating: 1, count: size))
      })
    do {
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      let error = portError { () throws(MessagePortError) in
        try remote.send(id: 1, receiveTimeout: .milliseconds(1))
      }
      #expect(error == .receiveTimedOut)
      remote.invalidate()
    }
    // The loop is in the handler, so it cannot have noticed the end of the sender.
    mayReply.open()
    waitUntil { server.port.statistics.droppedReplyCount == 1 }
    waitUntil { server.port.connectionCount == 0 }
    let counted = server.port.statistics
    #expect(counted.receivedCount == counted.replyCount + counted.droppedReplyCount && counted.replyCount == 0)
  }

  @Test("a port that is released reports its unconfirmed messages")
  func letGo() throws {
    let directory = try PortDirectory()
    let lost = Box<[MessagePort.Undelivered]>([])
    let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    do {
      let remote = try MessagePort.Remote(
        name: "a", directory: directory.place, undelivered: { one in lost.update { $0.append(one) } })
      try remote.send(id: 4)
    }
    #expect(lost.value == [.init(serial: 1, id: 4, reason: .invalid)])
    #expect(port.isValid)
  }

  @Test("a loop that a remote port was added to notices the end of the peer")
  func loop() throws {
    let directory = try PortDirectory()
    let log = onNewThread { () -> String in
      guard let port = try? MessagePort.Local(name: "a", directory: directory.place, handler: { _ in nil }),
        let remote = try? MessagePort.Remote(name: "a", directory: directory.place)
      else { return "" }
      let loop = RunLoop.current
      try? loop.add(remote, forMode: .default)
      let before = loop.contains(remote, forMode: .default)
      port.invalidate()
      let result = loop.run(mode: .default, for: .unlimited)
      return "\(before) \(result) \(remote.isValid) \(loop.contains(remote, forMode: .default))"
    }
    #expect(log == "true finished false false")
  }

  @Test("with either process killed at random, every message is delivered once or reported")
  func kills() throws {
    let (status, text) = try run(["20000", "20", "7", "30"])
    #expect(status == 0, "\(text)")
    #expect(text.hasSuffix("right\n"), "\(text)")
  }

  @Test("descriptors for which the receiver has no room are rejected with their message")
  func starved() throws {
    let (status, text) = try run(["starve"])
    #expect(text == "refused\n0 [2] 1\n")
    #expect(status == 0)
  }

  /// Runs the program built with the tests, and returns its status and its output.
  private func run(_ arguments: [String]) throws -> (Int32, String) {
    let process = Process()
    process.executableURL = Bundle.main.bundleURL.appendingPathComponent("message-stress")
    if !FileManager.default.isExecutableFile(atPath: process.executableURL?.path ?? "") {
      let products = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      process.executableURL = products.appendingPathComponent("message-stress")
    }
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.start()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Waiting for message ports", .timeLimit(.minutes(20)))
struct MessagePortWaitTests {
  @Test("a receiver that does not read makes the sender wait, and the queue is limited")
  func slowReader() throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    var sent = 0
    let error = portError { () throws(MessagePortError) in
      while true {
        try remote.send(id: 1, bytes: [1], sendTimeout: .zero)
        sent += 1
      }
    }
    #expect(error == .sendTimedOut)
    // Limited by the kernel's buffer or by the number of unconfirmed messages.
    #expect((1...UnconfirmedMessages.limit).contains(sent))
    #expect(
      portError { () throws(MessagePortError) in try remote.send(id: 1, bytes: [1], sendTimeout: .milliseconds(1)) }
        == .sendTimedOut)
    #expect(
      portError { () throws(MessagePortError) in
        try remote.send(
          id: 1, bytes: [UInt8](repeating: 0, count: 32_000), sendTimeout: .milliseconds(1), receiveTimeout: nil,
          replyMode: "reply")
      } == .sendTimedOut)
    // Sending continues once the receiver reads.
    let count = sent
    let server = onNewThread { () -> Int in
      try? RunLoop.current.add(port, forMode: .default)
      while port.statistics.receivedCount < count {
        RunLoop.current.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true)
      }
      RunLoop.current.remove(port, forMode: .default)
      return port.statistics.receivedCount
    }
    #expect(server == sent)
    try remote.awaitConfirmations(timeout: .unlimited)
    #expect(remote.statistics.confirmedCount == sent)
  }

  @Test("a sender that does not read its replies is not read, and blocks no other")
  func slowSender() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory, limits: .init(maximumUnfinishedMessageCount: 4)) { _ in
      MessagePort.Reply([UInt8](repeating: 1, count: 30_000))
    }
    let client = try RawClient(directory)
    var token: UInt64 = 1
    // Until no more are accepted: replies fill one direction, requests the other.
    while client.send(packet(MessageFrame(.request, token: token))) > 0 || server.port.statistics.receivedCount < 4 {
      if token % 64 == 0 { sched_yield() }
      token += 1
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 1, receiveTimeout: .unlimited)?.bytes.count == 30_000)
    // The client reads at last, and gets one reply to each request.
    #expect(client.receive().count == 30_032)
    #expect(server.port.isValid)
  }

  @Test("requests that are not handled are not read beyond the limit")
  func unfinished() async throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(
      name: "a", directory: directory.place, limits: .init(maximumUnfinishedMessageCount: 3))
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    for id in 0..<20 { try remote.send(id: Int32(id)) }
    while port.statistics.receivedCount < 3 { await Task.yield() }
    var ids: [Int32] = []
    for await request in port.requests {
      ids.append(request.id)
      #expect(port.statistics.receivedCount <= ids.count + 3)
      if ids.count == 20 { break }
    }
    #expect(ids == Array(0..<20))
    try remote.awaitConfirmations(timeout: .unlimited)
    #expect(remote.statistics.confirmedCount == 20)
  }

  @Test("a confirmation does not wait for another turn")
  func confirmedAtTheLimit() throws {
    let directory = try PortDirectory()
    let kept = Box<[MessagePort.Request]>([])
    let port = try MessagePort.Local(
      "a", directory.place, .init(maximumUnfinishedMessageCount: 31), { $0.isSameUser }, nil,
      deliver: { request in if request.expectsReply { kept.update { $0.append(request) } } })
    let client = try RawClient(directory)
    // A turn of 32 messages, after which no more are read, although one has arrived.
    client.send(packet(MessageFrame(.oneWay, token: 1)))
    for token in 2...33 { client.send(packet(MessageFrame(.request, token: UInt64(token)))) }
    let isConfirmed = onNewThread { [socket = client.socket] () -> Bool in
      let loop = RunLoop.current
      try? loop.add(port, forMode: .default)
      while kept.value.count < 31 { loop.run(mode: .default, for: .zero) }
      return SystemCall.isReadable(socket)
    }
    try #require(isConfirmed)
    #expect(client.receive() == packet(MessageFrame(.confirmation, token: 1)))
    port.invalidate()
  }

  @Test("a reply that is late is abandoned, by the loop's clock in a reply mode")
  func virtualTimeout() throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    let log = onVirtualTime { time, _ -> String in
      guard let remote = try? MessagePort.Remote(name: "a", directory: directory.place) else { return "" }
      let error = portError { () throws(MessagePortError) in
        try remote.send(id: 1, receiveTimeout: .seconds(3600), replyMode: "reply")
      }
      return "\(error == .receiveTimedOut) \(time.now.nanoseconds / 1_000_000_000) \(remote.state.pending.count)"
    }
    #expect(log == "true 3600 0")
    #expect(port.isValid)
  }

  @Test("a stop of the loop ends the wait, and so does the end of its thread")
  func stopped() throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    let error = onNewThread { () -> MessagePortError? in
      guard let remote = try? MessagePort.Remote(name: "a", directory: directory.place) else { return nil }
      RunLoop.current.perform(inModes: ["reply"]) { RunLoop.current.stop() }
      return portError { () throws(MessagePortError) in
        try remote.send(id: 1, receiveTimeout: nil, replyMode: "reply")
      }
    }
    #expect(error == .stopped)
    #expect(port.isValid)
  }

  @Test("a reply that arrives too late is counted and dropped")
  func late() throws {
    let directory = try PortDirectory()
    let mayReply = Box(false)
    let server = try PortServer(directory) { request in
      if request.id == 1 { waitUntil { mayReply.value } }
      return MessagePort.Reply([UInt8(request.id)])
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(
      portError { () throws(MessagePortError) in try remote.send(id: 1, receiveTimeout: .milliseconds(1)) }
        == .receiveTimedOut)
    mayReply.value = true
    #expect(try remote.send(id: 2, receiveTimeout: .unlimited)?.bytes == [2])
    #expect(remote.statistics == .init(sentCount: 2, replyCount: 1, lateReplyCount: 1))
    #expect(server.port.statistics.replyCount == 2)
  }
}

@Suite("Message ports and tasks", .timeLimit(.minutes(20)))
struct MessagePortTaskTests {
  @Test("tasks send requests, and tasks reply")
  func tasks() async throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let answering = Task {
      for await request in port.requests { request.reply(.init(request.bytes + [9])) }
      return true
    }
    try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
      for number in 0..<50 {
        group.addTask { try await remote.request(id: 1, bytes: [UInt8(number)], timeout: .unlimited)?.bytes }
      }
      var sum = 0
      for try await reply in group { sum += Int(reply?.first ?? 0) + (reply?.last == 9 ? 0 : 1000) }
      #expect(sum == 49 * 25)
    }
    port.invalidate()
    #expect(await answering.value)
    #expect(remote.statistics.replyCount == 50)
  }

  @Test("a cancelled task stops waiting, as does one that timed out")
  func cancelled() async throws {
    let directory = try PortDirectory()
    let port = try MessagePort.Local(name: "a", directory: directory.place)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    func outcome(_ timeout: Duration?) async -> MessagePortError? {
      do throws(MessagePortError) {
        _ = try await remote.request(id: 1, timeout: timeout)
        return nil
      } catch { return error }
    }
    let task = Task { await outcome(nil) }
    let requests = port.requests.makeAsyncIterator()
    let request = await requests.next()
    task.cancel()
    #expect(await task.value == .cancelled)
    #expect(await outcome(.milliseconds(5)) == .receiveTimedOut)
    request?.reply(nil)
    let waiting = Task {
      let requests = port.requests.makeAsyncIterator()
      _ = await requests.next()
      return await requests.next() == nil
    }
    waiting.cancel()
    #expect(await waiting.value)
    #expect(port.isValid)
  }
}

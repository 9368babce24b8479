// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages
@testable import RunLoopSystemEvents

/// Descriptors whose close blocks must not block a loop: if the loop closed one itself, the requests below would have
/// no reply in ten seconds, and the test would then let the close return.
@Suite("Closing descriptors whose sender makes that take long", .timeLimit(.minutes(20)))
struct MessagePortClosingTests {
  /// The ways in which a local port receives a descriptor that it does not keep.
  enum Way: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case ignored, closed, malformed, noise, unread, emptyPacket, connectionRefused, untrusted

    var testDescription: String { rawValue }
  }

  private static let patience: Duration = .seconds(300)

  @Test("a loop continues while an unclaimed descriptor is closed", arguments: Way.allCases)
  func local(way: Way) throws {
    let directory = try PortDirectory()
    let lingering = try LingeringSocket()
    let isFirst = Box(true)
    let server = try PortServer(
      directory, limits: .init(maximumConnectionCount: way == .connectionRefused ? 1 : 8),
      handler: { request in
        if way == .closed { for descriptor in request.descriptors { descriptor.close() } }
        return MessagePort.Reply(request.bytes)
      },
      accepts: { _ in way != .untrusted || isFirst.take(setting: false) })
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)?.bytes == [1])
    // The loop must see everything at once, so it is kept busy until all of it has arrived.
    let isOccupied = Box(false)
    let isThere = Box(false)
    server.loop.perform {
      isOccupied.value = true
      while !isThere.value { usleep(100) }
    }
    waitUntil { isOccupied.value }
    let client = try RawClient(directory)
    let request = packet(MessageFrame(.request, token: 1, descriptorCount: 1))
    switch way {
    case .ignored, .closed, .connectionRefused, .untrusted: break
    case .malformed: client.send(packet(MessageFrame(.request, token: 1)), descriptors: [lingering.number])
    case .noise: client.send([1, 2, 3], descriptors: [lingering.number])
    case .unread: client.send([1, 2, 3])
    case .emptyPacket: client.send([])
    }
    try #require(client.send(request, descriptors: [lingering.number]) > 0)
    lingering.letGo()
    isThere.value = true
    let reply = Result { try remote.send(id: 2, bytes: [2], receiveTimeout: Self.patience)?.bytes }
    #expect(throws: Never.self) { try #expect(reply.get() == [2]) }
    if way != .ignored, way != .closed {
      #expect(client.awaitEnd())
      let again = Result { try remote.send(id: 3, bytes: [3], receiveTimeout: Self.patience)?.bytes }
      #expect(throws: Never.self) { try #expect(again.get() == [3]) }
    }
    lingering.release()
    withExtendedLifetime(server) {}
  }

  @Test("a port with pending connections is invalidated immediately")
  func backlog() throws {
    let directory = try PortDirectory()
    let lingering = try LingeringSocket()
    var port: MessagePort.Local? = try MessagePort.Local(name: "a", directory: directory.place) { _ in nil }
    let client = try RawClient(directory)
    client.send(packet(MessageFrame(.request, token: 1, descriptorCount: 1)), descriptors: [lingering.number])
    lingering.letGo()
    port?.invalidate()
    let isOver = Box(false)
    let held = Box(port)
    port = nil
    let thread = startThread { () -> Bool in
      held.value = nil
      isOver.value = true
      return true
    }
    let limit = Tick.after(Self.patience)
    while !isOver.value, Tick.monotonicNow < limit { usleep(1000) }
    #expect(isOver.value)
    lingering.release()
    #expect(thread.result())
  }

  @Test("a connection ends immediately although closing the descriptor of a waiting reply takes long")
  func replyThatWaits() throws {
    let directory = try PortDirectory()
    let lingering = try LingeringSocket()
    let held = Box<MessagePort.Descriptor?>(try MessagePort.Descriptor(duplicating: lingering.number))
    lingering.letGo()
    // The client reads nothing, and the socket has no room for all replies.
    let requests = 32
    let handled = Box(0)
    let server = try PortServer(directory) { request in
      handled.update { $0 += 1 }
      var descriptors: [MessagePort.Descriptor] = []
      if handled.value == requests {
        held.update {
          descriptors = $0.map { [$0] } ?? []
          $0 = nil
        }
      }
      return MessagePort.Reply([UInt8](repeating: 1, count: 30_000), descriptors: descriptors)
    }
    let client = try RawClient(directory)
    for token in 1...requests {
      try #require(client.send(packet(MessageFrame(.request, token: UInt64(token)))) > 0)
    }
    waitUntil { handled.value == requests }
    // The loop has handled the last reply.
    let isDone = Box(false)
    server.loop.perform { isDone.value = true }
    waitUntil { isDone.value }
    let thread = startThread { () -> Bool in
      server.port.invalidate()
      return true
    }
    // POLLHUP is always reported.
    var end = pollfd(fd: client.socket.number, events: 0, revents: 0)
    #expect(poll(&end, 1, 300_000) == 1)
    lingering.release()
    #expect(thread.result())
  }

  @Test("a sender continues when a reply that it no longer awaits carries a descriptor", arguments: [true, false])
  func remote(isAwaited: Bool) throws {
    let directory = try PortDirectory()
    let lingering = try LingeringSocket()
    _ = try directory.place.open(making: true)
    let listener = MessagePort.Descriptor(owning: crl_message_socket())
    try #require(crl_message_bind(listener.number, directory.place.path + "/a") == 0)
    try #require(crl_message_listen(listener.number) == 0)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let server = MessagePort.Descriptor(owning: crl_accept(listener.number))
    func answer(_ token: UInt64, _ descriptors: [Int32] = []) {
      let bytes = packet(MessageFrame(.reply, token: token, descriptorCount: descriptors.count))
      _ = crl_message_send(
        server.number, bytes, bytes.count, nil, 0, descriptors, Int32(descriptors.count))
    }
    answer(isAwaited ? 1 : 77, [lingering.number])
    lingering.letGo()
    if !isAwaited { answer(1) }
    answer(2)
    let isOver = Box(false)
    let thread = startThread { () -> Bool in
      defer { isOver.value = true }
      let first = try? remote.send(id: 1, receiveTimeout: Self.patience)?.descriptors.count
      let second = try? remote.send(id: 2, receiveTimeout: Self.patience)?.descriptors.count
      return first == (isAwaited ? 1 : 0) && second == 0
    }
    let limit = Tick.after(Self.patience)
    while !isOver.value, Tick.monotonicNow < limit { usleep(1000) }
    #expect(isOver.value)
    lingering.release()
    #expect(thread.result())
  }

  @Test("a descriptor that was taken belongs to the handler, and is closed where the handler closes it")
  func taken() throws {
    let directory = try PortDirectory()
    let pipe = try RawPipe()
    let numbers = Box<[Int32]>([])
    let server = try PortServer(directory) { request in
      numbers.update { $0 += request.descriptors.compactMap { $0.take() } }
      return MessagePort.Reply()
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    _ = try remote.send(id: 1, descriptors: [pipe.writing], receiveTimeout: .unlimited)
    let number = try #require(numbers.value.first)
    #expect(fcntl(number, F_GETFD) == FD_CLOEXEC)
    close(number)
    pipe.closeWriting()
    pipe.awaitEnd()
    withExtendedLifetime(server) {}
  }

  @Test("a storm of unclaimed descriptors leaves neither descriptors nor threads behind")
  func storm() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      let pipe = try RawPipe()
      func send(_ times: Int) throws {
        for _ in 0..<times {
          _ = try remote.send(
            id: 1, descriptors: [pipe.writing, pipe.writing, pipe.writing], receiveTimeout: .unlimited)
          try RawClient(directory).send([1], descriptors: [pipe.writing])
        }
      }
      try send(1)
      waitUntil { server.port.connectionCount == 1 }
      let census = DescriptorCensus()
      try send(300)
      waitUntil { server.port.connectionCount == 1 }
      // Its thread ends when there is nothing left to close.
      waitUntil { DescriptorCloser.isIdle }
      // One more may have waited to be closed when they were counted.
      waitUntil {
        let now = DescriptorCensus()
        return ["socket:", "pipe:"].allSatisfy { now.count($0) <= census.count($0) }
      }
    }
  }
}

#if DEBUG
  extension MessagePortClosingTests {
    @Test("if the closing thread cannot be created, a descriptor is still closed")
    func noThread() throws {
      let pipe = try RawPipe()
      let plan = FaultPlan()
      plan.plan(.threadCreate, .fails(EAGAIN))
      plan.rule {
        // While another test's descriptors are being closed, the thread already exists.
        while !plan.isUsedUp {
          MessagePort.Descriptor(owning: dup(pipe.writing), .apart).close()
        }
      }
      pipe.closeWriting()
      pipe.awaitEnd()
    }
  }
#endif

extension Box where Value == Bool {
  /// Returns the value, and replaces it.
  fileprivate func take(setting next: Bool) -> Bool {
    var before = false
    update {
      before = $0
      $0 = next
    }
    return before
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Messages that a port rejects", .timeLimit(.minutes(20)))
struct MessagePortRefusalTests {
  /// Bytes that a raw client sends, and the number of descriptors with them.
  struct Malformed: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var bytes: [UInt8]
    var descriptors = 0
  }

  private static let malformed: [Malformed] = [
    Malformed(testDescription: "one byte", bytes: [1]),
    Malformed(testDescription: "noise", bytes: (0..<200).map { UInt8($0) }),
    Malformed(testDescription: "half a header", bytes: Array(packet(MessageFrame(.request, token: 1)).prefix(31))),
    Malformed(testDescription: "half a payload", bytes: packet(MessageFrame(.request, token: 1, length: 9), [1, 2])),
    Malformed(testDescription: "more payload", bytes: packet(MessageFrame(.request, token: 1, length: 1), [1, 2])),
    Malformed(
      testDescription: "a packet too long",
      bytes: packet(MessageFrame(.request, token: 1), [UInt8](repeating: 0, count: 33_000))),
    Malformed(testDescription: "a reply", bytes: packet(MessageFrame(.reply, token: 1))),
    Malformed(testDescription: "a confirmation", bytes: packet(MessageFrame(.confirmation, token: 1))),
    Malformed(
      testDescription: "no descriptor though one is said",
      bytes: packet(MessageFrame(.request, token: 1, descriptorCount: 1))),
    Malformed(testDescription: "a descriptor more", bytes: packet(MessageFrame(.request, token: 1)), descriptors: 1),
    Malformed(
      testDescription: "memory that is a pipe",
      bytes: packet(MessageFrame(.request, token: 1, length: 40_000, isOutOfLine: true)), descriptors: 1),
    Malformed(testDescription: "noise with descriptors", bytes: [1, 2, 3], descriptors: 200),
  ]

  @Test("an invalid message ends its connection, is counted, and affects no other", arguments: malformed)
  func breaksTheProtocol(input: Malformed) throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)?.bytes == [1])
    let pipe = try RawPipe()
    let client = try RawClient(directory)
    #expect(client.send(input.bytes, descriptors: Array(repeating: pipe.writing, count: input.descriptors)) > 0)
    pipe.closeWriting()
    #expect(client.awaitEnd())
    // All copies of the descriptors sent with it are closed.
    pipe.awaitEnd()
    #expect(server.port.statistics.malformedCount == 1)
    #expect(try remote.send(id: 1, bytes: [2], receiveTimeout: .unlimited)?.bytes == [2])
  }

  @Test("memory that can be changed or is shorter than announced is rejected", arguments: [true, false])
  func memory(isSealed: Bool) throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let client = try RawClient(directory)
    let memory = MessagePort.Descriptor(owning: crl_message_memory())
    try #require(crl_message_memory_write(memory.number, [1, 2, 3], 3) == 3)
    if isSealed { try #require(crl_message_memory_seal(memory.number) == 0) }
    let length = isSealed ? 40_000 : 3
    client.send(
      packet(MessageFrame(.request, token: 1, length: length, isOutOfLine: true)), descriptors: [memory.number])
    #expect(client.awaitEnd())
    #expect(server.port.statistics.malformedCount == 1)
  }

  @Test("an unnamed file in memory is read if it is complete and not shorter than announced", arguments: [true, false])
  func namelessFile(isWhole: Bool) throws {
    let number = crl_message_memory_file()
    try #require(number >= 0)
    let memory = MessagePort.Descriptor(owning: number)
    #expect(crl_message_memory_is_nameless(number) == 1)
    let bytes = [UInt8](repeating: 7, count: isWhole ? 40_000 : 39_999)
    try #require(crl_message_memory_write(number, bytes, bytes.count) == Int32(bytes.count))
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let client = try RawClient(directory)
    client.send(
      packet(MessageFrame(.oneWay, token: 1, length: 40_000, isOutOfLine: true)), descriptors: [number])
    withExtendedLifetime(memory) {}
    if isWhole {
      while server.port.statistics.receivedCount == 0 { sched_yield() }
      #expect(server.port.statistics.malformedCount == 0)
    } else {
      #expect(client.awaitEnd())
      #expect(server.port.statistics.malformedCount == 1)
    }
  }

  @Test("a file with a name, or on a disk, is not read")
  func namedFile() throws {
    var template = Array("/dev/shm/runloop-named-XXXXXX".utf8CString)
    let named = MessagePort.Descriptor(owning: mkstemp(&template))
    defer { unlink(template) }
    try #require(named.number >= 0)
    #expect(crl_message_memory_is_nameless(named.number) == 0)
  }

  @Test("an empty packet and a client that disconnects leave nothing behind")
  func gone() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    for _ in 0..<20 {
      let client = try RawClient(directory)
      client.send([])
    }
    let client = try RawClient(directory)
    client.send(packet(MessageFrame(.request, token: 5, length: 1), [4]))
    #expect(client.receive() == packet(MessageFrame(.reply, token: 5, length: 1), [4]))
    waitUntil { server.port.connectionCount <= 1 }
    #expect(server.port.statistics.malformedCount == 0)
  }

  @Test("a message longer than the limit is rejected at either end, and the next one passes")
  func oversized() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory, limits: .init(maximumMessageSize: 100_000)) { request in
      MessagePort.Reply([UInt8](repeating: 1, count: Int(request.id)))
    }
    let lost = Box<[MessagePort.Undelivered]>([])
    let remote = try MessagePort.Remote(
      name: "a", directory: directory.place, maximumMessageSize: 200_000,
      undelivered: { one in lost.update { $0.append(one) } })
    func ask(_ bytes: Int, _ reply: Int32) -> MessagePortError? {
      portError { () throws(MessagePortError) in
        try remote.send(id: reply, bytes: [UInt8](repeating: 0, count: bytes), receiveTimeout: .unlimited)
      }
    }
    #expect(ask(200_001, 1) == .messageTooLarge(200_001, limit: 200_000))
    #expect(ask(100_001, 1) == .rejected(.tooLarge))
    #expect(ask(100_000, 1) == nil)
    // A reply that the receiver may not send.
    #expect(ask(1, 100_001) == .rejected(.tooLarge))
    let serial = try remote.send(id: 9, bytes: [UInt8](repeating: 0, count: 100_001))
    try remote.awaitConfirmations(timeout: .unlimited)
    #expect(lost.value == [.init(serial: serial, id: 9, reason: .rejected(.tooLarge))])
    let small = try MessagePort.Remote(name: "a", directory: directory.place, maximumMessageSize: 10)
    #expect(
      portError { () throws(MessagePortError) in try small.send(id: 11, receiveTimeout: .unlimited) }
        == .messageTooLarge(11, limit: 10))
    #expect(try small.send(id: 10, receiveTimeout: .unlimited)?.bytes.count == 10)
    #expect(server.port.statistics.oversizedCount == 2)
  }

  @Test("a sender notified of a rejected message may send another and wait for its reply")
  func askedWhileTold() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory, limits: .init(maximumMessageSize: 100))
    let port = Box<MessagePort.Remote?>(nil)
    let replies = Box<[String]>([])
    let remote = try MessagePort.Remote(
      name: "a", directory: directory.place,
      undelivered: { one in
        let reply = Result { () throws(MessagePortError) in
          try port.value?.send(id: 1, bytes: [UInt8(one.id)], receiveTimeout: .unlimited)
        }
        replies.update { $0.append("\(one.id): \((try? reply.get())?.bytes ?? [])") }
      })
    port.value = remote
    for id in 1...3 as ClosedRange<Int32> {
      try remote.send(id: id, bytes: [UInt8](repeating: 0, count: 101))
    }
    try remote.awaitConfirmations(timeout: .unlimited)
    #expect(replies.value == ["1: [1]", "2: [2]", "3: [3]"])
    port.value = nil
    withExtendedLifetime(server) {}
  }

  @Test("the number of connections is limited")
  func connections() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory, limits: .init(maximumConnectionCount: 1))
    let first = try MessagePort.Remote(name: "a", directory: directory.place)
    _ = try first.send(id: 1, receiveTimeout: .unlimited)
    let second = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(
      portError { () throws(MessagePortError) in try second.send(id: 1, receiveTimeout: .unlimited) }
        == .rejected(.tooManyConnections))
    #expect(server.port.statistics.rejectedConnectionCount == 1)
    first.invalidate()
    waitUntil { server.port.connectionCount == 0 }
    let third = try MessagePort.Remote(name: "a", directory: directory.place)
    #expect(try third.send(id: 1, bytes: [1], receiveTimeout: .unlimited)?.bytes == [1])
  }

  @Test("a peer that violates the protocol ends a remote port", arguments: [MessageFrame.Kind.request, .oneWay])
  func badServer(kind: MessageFrame.Kind) throws {
    let directory = try PortDirectory()
    _ = try directory.place.open(making: true)
    let listener = MessagePort.Descriptor(owning: crl_message_socket())
    try #require(crl_message_bind(listener.number, directory.place.path + "/a") == 0)
    try #require(crl_message_listen(listener.number) == 0)
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let server = MessagePort.Descriptor(owning: crl_accept(listener.number))
    let bytes = packet(MessageFrame(kind, token: 1))
    try #require(crl_message_send(server.number, bytes, bytes.count, nil, 0, nil, 0) > 0)
    #expect(
      portError { () throws(MessagePortError) in try remote.send(id: 1, receiveTimeout: .unlimited) }
        == .peerMalformed)
    #expect(!remote.isValid && remote.statistics.malformedCount == 1)
  }
}

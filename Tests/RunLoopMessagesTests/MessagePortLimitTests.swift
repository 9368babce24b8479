// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Limits of message ports", .timeLimit(.minutes(20)))
struct MessagePortLimitTests {
  @Test("limits that are changed later are at least one, too")
  func clamped() {
    var limits = MessagePort.Limits()
    #expect(limits.otherUsers.connections == 64 && limits.otherUsers.descriptors == 64)
    #expect(limits.otherUsers.bytes == 16 << 20 && !limits.takesDescriptorsOfOtherUsers)
    limits.maximumMessageSize = 0
    limits.maximumConnectionCount = -1
    limits.maximumUnfinishedMessageCount = .min
    limits.connectionBytes = 0
    limits.maximumByteCount = 0
    limits.descriptors = 0
    limits.otherUsers.bytes = -5
    limits.otherUsers.connections = 0
    limits.otherUsers.descriptors = 0
    limits.otherUsers.silence = .seconds(-1)
    #expect(
      limits.maximumMessageSize == 1 && limits.maximumConnectionCount == 1 && limits.maximumUnfinishedMessageCount == 1)
    #expect(limits.connectionBytes == 1 && limits.maximumByteCount == 1 && limits.descriptors == 1)
    #expect(limits.otherUsers.bytes == 1 && limits.otherUsers.connections == 1 && limits.otherUsers.descriptors == 1)
    #expect(limits.otherUsers.silence == .milliseconds(1))
  }

  @Test("a client that does not read its replies pins 32 MiB, and then receives all of them in order")
  func unread() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { request in
      MessagePort.Reply([UInt8](repeating: UInt8(request.id), count: 4 << 20))
    }
    let client = try RawClient(directory)
    for number in 1...64 { client.send(packet(MessageFrame(.request, id: Int32(number), token: UInt64(number)))) }
    // Another sender's request gets its reply after all replies that this sender can get for now.
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    for _ in 0..<70 { _ = try remote.send(id: 1, receiveTimeout: .unlimited) }
    // Either in transit or queued as bytes; those for the other sender have been read.
    server.port.account.noteReading()
    #expect(server.port.account.now.outgoing <= 40 << 20)
    #expect(server.port.statistics.receivedCount < 70 + 16)
    for number in 1...64 {
      let frame = MessageFrame(.reply, token: UInt64(number), length: 4 << 20, isOutOfLine: true)
      #expect(client.receive() == packet(frame))
    }
    #expect(server.port.statistics.overQuotaCount == 0)
    waitUntil {
      server.port.account.noteReading()
      return server.port.account.now.outgoing == 0
    }
  }

  @Test("sparse memory is rejected, because it costs its sender nothing", arguments: [1 << 20, 64 << 20])
  func sparse(size: Int) throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory)
    let client = try RawClient(directory)
    let memory = MessagePort.Descriptor(owning: crl_message_memory())
    try #require(ftruncate(memory.number, size) == 0)
    try #require(crl_message_memory_seal(memory.number) == 0)
    client.send(packet(MessageFrame(.request, token: 1, length: size, isOutOfLine: true)), descriptors: [memory.number])
    #expect(client.awaitEnd())
    #expect(server.port.statistics.malformedCount == 1 && server.port.statistics.receivedCount == 0)
  }

  @Test(
    "a message for which memory is unavailable is rejected, and the next is received",
    .disabled(if: isSanitizedForThreads, "the sanitizer needs more memory than the limit leaves"))
  func noMemory() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory, limits: .init(maximumMessageSize: 1 << 30))
      let client = try RawClient(directory)
      let size = 512 << 20
      let memory = MessagePort.Descriptor(owning: crl_message_memory())
      let bytes = [UInt8](repeating: 7, count: 1 << 20)
      for _ in 0..<(size >> 20) {
        try #require(crl_message_memory_write(memory.number, bytes, bytes.count) == bytes.count)
      }
      try #require(crl_message_memory_seal(memory.number) == 0)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
      let pages = try #require(Self.pages())
      limit.rlim_cur = rlim_t(pages * 4096 + size / 2)
      try #require(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
      let frame = MessageFrame(.request, token: 1, length: size, isOutOfLine: true)
      client.send(packet(frame), descriptors: [memory.number])
      let reason = MessagePort.Rejection.noResources.rawValue
      #expect(client.receive() == packet(MessageFrame(.rejection, id: reason, token: 1)))
      client.send(packet(MessageFrame(.request, token: 2)))
      #expect(client.receive() == packet(MessageFrame(.reply, token: 2)))
      #expect(server.port.statistics.lackingResourceCount == 1)
    }
  }

  @Test("the limit for all senders together is not exceeded, and the memory is available again later")
  func total() throws {
    let directory = try PortDirectory()
    var limits = MessagePort.Limits(maximumMessageSize: 10_000)
    limits.maximumByteCount = 20_000
    limits.descriptors = 3
    let held = Box<[MessagePort.Request]>([])
    let directoryPort = try MessagePort.Local("a", directory.place, limits, { $0.isSameUser }, nil) { request in
      held.update { $0.append(request) }
    }
    let serving = SourceRig.startLoop()
    try serving.loop.add(directoryPort, forMode: .default)
    let pipe = try RawPipe()
    let clients = try (0..<3).map { _ in try RawClient(directory) }
    let bytes = [UInt8](repeating: 1, count: 9_000)
    func rejection(_ token: UInt64) -> [UInt8] {
      packet(MessageFrame(.rejection, id: MessagePort.Rejection.quotaExceeded.rawValue, token: token))
    }
    clients[0].send(packet(MessageFrame(.request, token: 1, length: 9_000), bytes))
    waitUntil { held.value.count == 1 }
    clients[1].send(packet(MessageFrame(.request, token: 2, length: 9_000), bytes))
    waitUntil { held.value.count == 2 }
    clients[2].send(packet(MessageFrame(.request, token: 3, length: 9_000), bytes))
    #expect(clients[2].receive() == rejection(3))
    held.update { $0.removeFirst() }.reply(nil)
    clients[2].send(
      packet(MessageFrame(.request, token: 4, descriptorCount: 3)),
      descriptors: [Int32](repeating: pipe.writing, count: 3))
    waitUntil { held.value.count == 2 }
    clients[2].send(packet(MessageFrame(.request, token: 5, descriptorCount: 1)), descriptors: [pipe.writing])
    #expect(clients[2].receive() == rejection(5))
    #expect(directoryPort.statistics.overQuotaCount == 2)
    let now = directoryPort.account.now
    #expect(now.connections == 3 && now.incoming == 9_000 && now.descriptors == 3)
    held.value = []
    waitUntil { directoryPort.account.now.descriptors == 0 && directoryPort.account.now.incoming == 0 }
    directoryPort.invalidate()
    serving.loop.perform { RunLoop.current.stop() }
    serving.thread.join()
    pipe.closeWriting()
    pipe.awaitEnd()
  }

  /// The number of pages in this process's address space.
  private static func pages() -> Int? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, 256, file) != nil else { return nil }
    return Int(String(decoding: line.prefix { $0 >= 48 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Foundation
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages
@testable import RunLoopSystemEvents

/// A process that sends random data.
///
/// Its actions follow from its seed; their results also depend on when the port serves it.
private struct Attacker {
  private let directory: PortDirectory
  private var random: SplitMix64
  private var clients: [RawClient] = []
  private let pipe: RawPipe
  private let memory: MessagePort.Descriptor
  private static let size = 40_000

  init(_ directory: PortDirectory, seed: UInt64) throws {
    self.directory = directory
    random = SplitMix64(seed: seed)
    pipe = try RawPipe()
    memory = MessagePort.Descriptor(owning: crl_message_memory())
    let bytes = [UInt8](repeating: 3, count: Self.size)
    try #require(crl_message_memory_write(memory.number, bytes, bytes.count) == bytes.count)
    try #require(crl_message_memory_seal(memory.number) == 0)
  }

  mutating func run(_ operations: Int) throws {
    for _ in 0..<operations { try step() }
  }

  private mutating func step() throws {
    guard !clients.isEmpty, !random.oneIn(25) else {
      if clients.count < 90 { clients.append(try RawClient(directory)) }
      return
    }
    let index = random.below(clients.count)
    switch random.below(200) {
    case 0: clients.remove(at: index)
    case 1: shutdown(clients[index].socket.number, Int32(SHUT_WR))
    // A client that reads seldom has much to read.
    case 2..<30 where crl_message_poll(clients[index].socket.number, Int16(POLLIN), 0) > 0:
      if clients[index].receive().isEmpty { clients.remove(at: index) }
    default:
      let answer = send(on: clients[index])
      if answer == -EAGAIN {
        // Wait for the port to read some.
        _ = crl_message_poll(clients[index].socket.number, Int16(POLLOUT), 1_000_000)
      } else if answer < 0 {
        // The port has ended the connection.
        clients.remove(at: index)
      }
    }
  }

  /// Sends a message, some parts of which may be invalid.
  private mutating func send(on client: RawClient) -> Int32 {
    let isOutOfLine = random.oneIn(4)
    let count = random.oneIn(4) ? random.below(5) : 0
    let length = isOutOfLine ? Self.size : random.below(random.oneIn(5) ? 30_000 : 100)
    let kind: MessageFrame.Kind = random.oneIn(200) ? .reply : random.oneIn(3) ? .oneWay : .request
    let frame = MessageFrame(
      kind, id: Int32(random.below(1000)), token: 1 + UInt64(random.below(1 << 20)), length: length,
      isOutOfLine: isOutOfLine, descriptorCount: count)
    var bytes = packet(frame, isOutOfLine ? [] : [UInt8](repeating: 1, count: length))
    var descriptors = [Int32](repeating: pipe.writing, count: count)
    if isOutOfLine { descriptors.insert(memory.number, at: 0) }
    switch random.below(120) {
    case 0: bytes[random.below(MessageFrame.size)] ^= UInt8(1 + random.below(255))
    case 1: bytes.removeLast(1 + random.below(bytes.count))
    case 2: bytes = []
    case 3: descriptors.append(contentsOf: [Int32](repeating: pipe.reading, count: random.below(200)))
    case 4: if !descriptors.isEmpty { descriptors.removeLast() }
    case 5: if isOutOfLine { descriptors[0] = pipe.reading }
    default: break
    }
    return client.send(bytes, descriptors: descriptors)
  }
}

/// The resources that a process uses.
private struct Use {
  let sockets = DescriptorCensus()
  let threads: Int
  /// Resident memory in bytes.
  let memory: Int

  init() throws {
    threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .ascii)
    memory = Int(text.split(separator: " ").dropFirst().first ?? "").map { $0 * 4096 } ?? 0
  }
}

/// Set `LIVE_FUZZ="SEED OPERATIONS"` in the environment for a longer run.
@Suite(
  "Message ports beside senders that send anything", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads),
  .enabled(if: geteuid() == 0, "only root can become other users"))
struct MessagePortLiveFuzzTests {
  @Test("while several users send noise, another's requests get replies, and nothing leaks")
  func noise() async {
    await #expect(processExitsWith: .success) {
      let words = (ProcessInfo.processInfo.environment["LIVE_FUZZ"] ?? "1 20000").split(separator: " ")
      let numbers = words.compactMap { UInt64($0) }
      try #require(numbers.count == 2)
      let (seed, operations) = (numbers[0], Int(numbers[1]))
      let (directory, place) = try sharedDirectory()
      var limits = MessagePort.Limits()
      limits.takesDescriptorsOfOtherUsers = true
      let port = try MessagePort.Local(name: "a", directory: place, limits: limits, accepts: { $0.user != 54_325 }) {
        request in
        switch request.id {
        case let id where id % 11 == 0: nil
        case let id where id % 7 == 0: MessagePort.Reply([UInt8](repeating: 4, count: 100_000))
        case let id where id % 5 == 0:
          MessagePort.Reply([], descriptors: (try? MessagePort.Descriptor(duplicating: 0)).map { [$0] } ?? [])
        default: MessagePort.Reply(request.bytes)
        }
      }
      let serving = SourceRig.startLoop()
      try serving.loop.add(port, forMode: .default)
      let remote = try MessagePort.Remote(name: "a", directory: place)
      var answered = 0
      func ask() throws {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: answered), count: answered % 3 == 0 ? 50_000 : 10)
        let reply = try remote.send(id: 1, bytes: bytes, receiveTimeout: .seconds(300))
        try #require(reply?.bytes == bytes)
        answered += 1
      }
      // The first storm, a quarter of the second, creates everything that is created once.
      var uses: [Use] = []
      for (turn, count) in [operations / 4, operations].enumerated() {
        // They begin only after all have been forked: a fork while the port serves would copy locks that its thread
        // holds.
        let go = try RawPipe()
        // Processes of the port's own user, of three others, and of one that the port does not accept.
        let attackers = try [0, 54_322, 54_323, 54_324, 54_325].enumerated().map { index, user in
          try asUser(user, beside: serving.loop) {
            alarm(600)
            go.closeWriting()
            go.awaitEnd()
            var attacker = try Attacker(directory, seed: seed &* 100 &+ UInt64(turn * 10 + index))
            try attacker.run(count / 5)
          }
        }
        go.closeWriting()
        for attacker in attackers {
          while crl_message_poll(attacker.done.reading, Int16(POLLIN), 0) == 0 { try ask() }
          #expect(attacker.done.read() == [7])
        }
        // Each process holds copies of the pipe ends of those before it.
        for attacker in attackers.reversed() {
          attacker.end.closeWriting()
          waitpid(attacker.child, nil, 0)
        }
        // Connections are accepted in order. Once this one is accepted, none of the earlier ones is left in the
        // listener's queue, where they are not counted.
        let last = try MessagePort.Remote(name: "a", directory: place, connectTimeout: .seconds(300))
          .send(id: 1, bytes: [1], receiveTimeout: .seconds(300))
        try #require(last?.bytes == [1])
        waitUntil { port.connectionCount == 1 && DescriptorCloser.isIdle }
        try ask()
        waitUntil {
          for account in port.users.values { account.noteReading() }
          port.account.noteReading()
          let now = port.account.now
          return port.users.values.allSatisfy(\.isUnused) && now.connections == 1 && now.incoming == 0
            && now.outgoing == 0 && now.descriptors == 0 && now.rejected == 0
        }
        uses.append(try Use())
      }
      let statistics = port.statistics
      // The scheduler decides how many arrive beside the other user's requests, and whether a quota is reached.
      #expect(answered >= uses.count && statistics.receivedCount > operations / 10, "\(statistics)")
      #expect(statistics.malformedCount > 0 && statistics.untrustedCount > 0, "\(statistics)")
      for kind in ["socket:", "pipe:", "memfd"] {
        #expect(uses[1].sockets.count(kind) <= uses[0].sockets.count(kind), "\(uses[1].sockets)")
      }
      // The closing threads have ended, as `isIdle` shows. Dispatch keeps a few workers.
      #expect(uses[1].threads <= uses[0].threads + 8, "\(uses)")
      #expect(uses[1].memory <= uses[0].memory + (16 << 20), "\(uses)")
      port.invalidate()
      serving.loop.perform { RunLoop.current.stop() }
      serving.thread.join()
    }
  }
}

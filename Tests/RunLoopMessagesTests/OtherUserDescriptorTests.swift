// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages
@testable import RunLoopSystemEvents

/// Each attack begins with a socket whose last close takes an hour, so that every later close waits for it, and then
/// sends as many descriptors as possible.
@Suite(
  "The descriptors that another user may cost a message port", .timeLimit(.minutes(20)),
  .disabled(if: isSanitizedForThreads), .enabled(if: geteuid() == 0, "only root can become another user"))
struct OtherUserDescriptorTests {
  /// The ways in which unwanted descriptors arrive.
  enum Attack: String, CaseIterable, Codable, Sendable, CustomTestStringConvertible {
    /// A packet that claims to contain one memory descriptor, and carries the maximum number.
    case moreThanClaimed
    /// Packets with one descriptor, as announced, which is not memory.
    case noMemory
    /// Rejected connections that contain packets.
    case rejectedConnections
    /// Connections of a user that the port does not accept.
    case untrusted
    /// Messages whose descriptors the port accepts and no handler takes.
    case wanted

    var testDescription: String { rawValue }

    /// Attacks with a lingering socket, whose last copy is the port's when it is processed, and then with a pipe.
    func run(
      _ directory: PortDirectory, _ lingering: LingeringSocket, _ pipe: RawPipe, letGo: () -> Void
    ) throws -> [RawClient] {
      let memory = packet(MessageFrame(.request, token: 1, length: 100_000, isOutOfLine: true))
      var clients: [RawClient] = []
      func connect() throws -> RawClient {
        let client = try RawClient(directory)
        clients.append(client)
        return client
      }
      switch self {
      case .moreThanClaimed:
        try connect().send(memory, descriptors: [lingering.number])
        letGo()
        for _ in 0..<20 {
          let client = try connect()
          client.send(memory, descriptors: [Int32](repeating: pipe.writing, count: 253))
          _ = client.awaitEnd()
        }
      case .noMemory:
        try connect().send(memory, descriptors: [lingering.number])
        letGo()
        // The connections are closed, but not the descriptors that they have sent.
        for _ in 0..<150 {
          let client = try connect()
          client.send(memory, descriptors: [pipe.writing])
          if crl_message_poll(client.socket.number, Int16(POLLIN), 10_000_000) > 0, client.receive().isEmpty {
            client.socket.close()
          }
        }
      case .rejectedConnections, .untrusted:
        if self == .rejectedConnections {
          for _ in 0..<64 {
            let client = try connect()
            client.send(packet(MessageFrame(.request, token: 1)))
          }
        }
        try connect().send(memory, descriptors: [lingering.number])
        letGo()
        for _ in 0..<300 { try connect().send(memory, descriptors: [pipe.writing]) }
      case .wanted:
        let client = try connect()
        client.send(packet(MessageFrame(.request, token: 1, descriptorCount: 1)), descriptors: [lingering.number])
        letGo()
        _ = client.receive()
        for token in 2...300 as ClosedRange<UInt64> {
          client.send(packet(MessageFrame(.request, token: token, descriptorCount: 1)), descriptors: [pipe.writing])
          // The port does not continue with what it has no room for while the close lingers.
          if token < 40 { _ = client.receive() }
        }
      }
      return clients
    }
  }

  @Test(
    "a hostile user costs at most 128 descriptors in any attack, and the loop continues", arguments: Attack.allCases)
  func bound(attack: Attack) async {
    switch attack {
    case .moreThanClaimed:
      await #expect(processExitsWith: .success) {
        try OtherUserDescriptorTests.countDescriptors(during: .moreThanClaimed)
      }
    case .noMemory:
      await #expect(processExitsWith: .success) { try OtherUserDescriptorTests.countDescriptors(during: .noMemory) }
    case .rejectedConnections:
      await #expect(processExitsWith: .success) {
        try OtherUserDescriptorTests.countDescriptors(during: .rejectedConnections)
      }
    case .untrusted:
      await #expect(processExitsWith: .success) { try OtherUserDescriptorTests.countDescriptors(during: .untrusted) }
    case .wanted:
      await #expect(processExitsWith: .success) { try OtherUserDescriptorTests.countDescriptors(during: .wanted) }
    }
  }

  /// Counts the descriptors of a port during an attack.
  private static func countDescriptors(during attack: Attack) throws {
    let (directory, place) = try sharedDirectory()
    var limits = MessagePort.Limits()
    limits.takesDescriptorsOfOtherUsers = attack == .wanted
    let port = try MessagePort.Local(
      name: "a", directory: place, limits: limits,
      accepts: { attack == .untrusted ? $0.user != hostile : true }, handler: { _ in MessagePort.Reply([1]) })
    let serving = SourceRig.startLoop()
    try serving.loop.add(port, forMode: .default)
    let remote = try MessagePort.Remote(name: "a", directory: place)
    func isServed() -> Bool {
      (try? remote.send(id: 1, receiveTimeout: .seconds(300)))?.bytes == [1]
    }
    #expect(isServed())
    let census = DescriptorCensus()
    let pipe = try RawPipe()
    let go = try RawPipe()
    let other = try asUser(friendly, beside: serving.loop) {
      go.closeWriting()
      let remote = try MessagePort.Remote(name: "a", directory: place, accepts: { _ in true })
      _ = try remote.send(id: 1, receiveTimeout: .unlimited)
      go.awaitEnd()
      for _ in 0..<100 {
        let reply = try remote.send(id: 4, bytes: [UInt8](repeating: 1, count: 100_000), receiveTimeout: .unlimited)
        guard reply?.bytes == [1] else { _exit(3) }
      }
    }
    waitUntil { port.connectionCount == 2 }
    // The loop must not process the first packet before the sender has closed its copy.
    let isThere = Box(false)
    // The loop is made busy first, because the event that wakes it may be served before a block.
    let isOccupied = Latch()
    serving.loop.perform {
      isOccupied.open()
      while !isThere.value { usleep(100) }
    }
    isOccupied.wait()
    let sent = try RawPipe()
    let child = try asUser(hostile) {
      go.closeWriting()
      // Created in the child, as the parent would keep another copy.
      let lingering = try LingeringSocket()
      let clients = try attack.run(directory, lingering, pipe) {
        lingering.letGo()
        sent.write()
      }
      for client in clients { _ = Unmanaged.passRetained(client) }
      _ = Unmanaged.passRetained(lingering)
    }
    awaitReadable(sent.reading)
    isThere.value = true
    var most = 0
    func count() {
      let now = DescriptorCensus()
      // One socket is the other user's connection, and ten pipe ends are the test's.
      let sockets = now.count("socket:") - census.count("socket:") - 1
      most = max(most, sockets + now.count("pipe:") - census.count("pipe:") - 10)
    }
    let limit = Tick.after(.seconds(20))
    while crl_message_poll(child.done.reading, Int16(POLLIN), 0) == 0, Tick.monotonicNow < limit { count() }
    for _ in 0..<100 { #expect(isServed()) }
    count()
    #expect(most <= 128, "\(most)")
    // Another user's messages do not wait for the closing thread.
    go.closeWriting()
    awaitReadable(other.done.reading)
    #expect(other.done.read() == [7])
    // The attacker's lingering sockets are closed when its processes end.
    child.end.closeWriting()
    waitpid(child.child, nil, 0)
    other.end.closeWriting()
    waitpid(other.child, nil, 0)
    _ = try MessagePort.Remote(name: "a", directory: place).send(id: 0, receiveTimeout: .unlimited)
    pipe.closeWriting()
    pipe.awaitEnd()
    waitUntil { port.connectionCount == 1 && DescriptorCloser.isIdle }
    waitUntil { DescriptorCensus().count("socket:") <= census.count("socket:") }
    for account in port.users.values {
      account.noteReading()
      #expect(account.isUnused, "\(account.now)")
    }
    port.invalidate()
    serving.loop.perform { RunLoop.current.stop() }
    serving.thread.join()
  }
}

// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages
@testable import RunLoopSystemEvents

/// `unshare`, which Swift's Glibc module does not expose; 0x10000000 is `CLONE_NEWUSER`.
@_silgen_name("unshare")
private func leaveNamespaces(_ flags: Int32) -> Int32

@Suite(
  "Resources of a message port for other users", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads),
  .enabled(if: geteuid() == 0, "only root can become another user"))
struct OtherUserTests {
  @Test("a hostile user costs at most 32 MiB and 128 descriptors, and another gets a reply")
  func storm() async {
    await #expect(processExitsWith: .success) {
      let (directory, place) = try sharedDirectory()
      let port = try MessagePort.Local(
        name: "a", directory: place, accepts: { _ in true },
        handler: { MessagePort.Reply([UInt8](repeating: 1, count: Int($0.id) << 20)) })
      let made = Box<RunLoop?>(nil)
      let serving = startThread { () -> Bool in
        try? RunLoop.current.add(port, forMode: .default)
        made.value = RunLoop.current
        RunLoop.current.runUntilStopped()
        return true
      }
      waitUntil { made.value != nil }
      let census = DescriptorCensus()
      // More connections than allowed, each with requests whose replies it never reads.
      let attack = try asUser(hostile, beside: made.value) {
        var clients: [RawClient] = []
        for _ in 0..<100 {
          let client = try RawClient(directory)
          for token in 1...8 as ClosedRange<UInt64> { client.send(packet(MessageFrame(.request, id: 3, token: token))) }
          clients.append(client)
        }
        // The connections stay open until the process ends.
        for client in clients { _ = Unmanaged.passRetained(client.socket) }
      }
      awaitReadable(attack.done.reading)
      waitUntil { port.statistics.rejectedConnectionCount == 36 && port.statistics.receivedCount == 64 * 8 }
      let account = try #require(port.users[hostile])
      #expect(account.now.connections == 64)
      #expect(account.now.outgoing <= 16 << 20 && account.now.descriptors <= 64)
      #expect(port.statistics.overQuotaCount > 0)
      // Another thread closes rejected connections.
      waitUntil { DescriptorCensus().count("socket:") <= census.count("socket:") + 64 }
      // In the meantime, another user connects.
      let other = try asUser(friendly, beside: made.value) {
        let remote = try MessagePort.Remote(name: "a", directory: place, accepts: { _ in true })
        guard try remote.send(id: 4, receiveTimeout: .unlimited)?.bytes.count == 4 << 20 else { _exit(3) }
      }
      var status: Int32 = 0
      awaitReadable(other.done.reading)
      #expect(other.done.read() == [7])
      other.end.closeWriting()
      waitpid(other.child, &status, 0)
      #expect(status == 0)
      // Once the attacker has ended, its resources are released.
      attack.end.closeWriting()
      waitpid(attack.child, &status, 0)
      waitUntil { port.connectionCount == 0 }
      _ = try MessagePort.Remote(name: "a", directory: place).send(id: 0, receiveTimeout: .unlimited)
      waitUntil {
        port.connectionCount == 0 && DescriptorCloser.isIdle
          && DescriptorCensus().count("socket:") <= census.count("socket:")
      }
      #expect(account.isUnused, "\(account.now)")
      made.value?.perform { RunLoop.current.stop() }
      #expect(serving.result())
      port.invalidate()
    }
  }

  @Test("before another's message, a port receives at most a turn of each of a hostile user's connections")
  func fairness() async {
    await #expect(processExitsWith: .success) {
      let (directory, place) = try sharedDirectory()
      let received = Box(0)
      let before = Box(-1)
      let port = try MessagePort.Local(
        name: "a", directory: place, accepts: { _ in true },
        handler: { request in
          if request.id == 9 { before.value = received.value } else { received.update { $0 += 1 } }
          return nil
        })
      let made = Box<RunLoop?>(nil)
      let serving = startThread { () -> Bool in
        try? RunLoop.current.add(port, forMode: .default)
        made.value = RunLoop.current
        RunLoop.current.runUntilStopped()
        return true
      }
      waitUntil { made.value != nil }
      let own = try RawClient(directory)
      let go = try RawPipe()
      let attack = try asUser(hostile, beside: made.value) {
        go.closeWriting()
        let clients = try (0..<64).map { _ in try RawClient(directory) }
        go.awaitEnd()
        for client in clients { while client.send(packet(MessageFrame(.request, token: 1))) > 0 {} }
        for client in clients { _ = Unmanaged.passRetained(client.socket) }
      }
      waitUntil { port.connectionCount == 65 }
      // The loop sees the messages once all of them have arrived.
      let isHeld = Box(false)
      let isThere = Box(false)
      made.value?.perform {
        isHeld.value = true
        while !isThere.value { usleep(100) }
      }
      waitUntil { isHeld.value }
      go.closeWriting()
      awaitReadable(attack.done.reading)
      own.send(packet(MessageFrame(.request, id: 9, token: 1)))
      isThere.value = true
      #expect(own.receive() == packet(MessageFrame(.noReply, token: 1)))
      // A turn has 32 messages, and one connection may have eight turns in a row.
      #expect(before.value >= 0 && before.value <= (64 + 8) * 32, "\(before.value)")
      waitUntil { received.value > (64 + 8) * 32 }
      attack.end.closeWriting()
      waitpid(attack.child, nil, 0)
      made.value?.perform { RunLoop.current.stop() }
      #expect(serving.result())
      port.invalidate()
    }
  }

  @Test("another user's descriptors end the connection, unless the port accepts descriptors", arguments: [true, false])
  func descriptors(takes: Bool) async {
    switch takes {
    case true:
      await #expect(processExitsWith: .success) { try OtherUserTests.sendDescriptors(takes: true) }
    case false:
      await #expect(processExitsWith: .success) { try OtherUserTests.sendDescriptors(takes: false) }
    }
  }

  /// Sends descriptors as another user to a port that does or does not accept them.
  private static func sendDescriptors(takes: Bool) throws {
    let (directory, place) = try sharedDirectory()
    defer { withExtendedLifetime(directory) {} }
    var limits = MessagePort.Limits()
    limits.takesDescriptorsOfOtherUsers = takes
    let port = try MessagePort.Local(
      name: "a", directory: place, limits: limits, accepts: { _ in true },
      handler: { MessagePort.Reply([UInt8($0.descriptors.count)] + $0.bytes.prefix(1)) })
    let code = Box<Int32>(-1)
    onNewThread {
      try? RunLoop.current.add(port, forMode: .default)
      let loop = RunLoop.current
      let asking = startThread { () -> Bool in
        defer { loop.perform { RunLoop.current.stop() } }
        let child = try? asUser(hostile, beside: loop) {
          let remote = try MessagePort.Remote(name: "a", directory: place, accepts: { _ in true })
          // A long message arrives as memory from every user.
          let long = try remote.send(id: 1, bytes: [UInt8](repeating: 5, count: 1 << 20), receiveTimeout: .unlimited)
          guard long?.bytes == [0, 5] else { _exit(4) }
          let error = portError { () throws(MessagePortError) in
            let reply = try remote.send(id: 1, descriptors: [0, 0], receiveTimeout: .unlimited)
            guard reply?.bytes == [2] else { _exit(5) }
          }
          _exit(error == (takes ? nil : .rejected(.descriptorsUnwanted)) ? 0 : 6)
        }
        var status: Int32 = -1
        if let child { waitpid(child.child, &status, 0) }
        // A child ended by a signal, such as that of its time limit, has failed.
        code.value = status
        return true
      }
      RunLoop.current.runUntilStopped()
      _ = asking.result()
    }
    #expect(code.value == 0)
    #expect(port.statistics.malformedCount == 0)
  }

  @Test("a silent connection of another user is ended after a time, and an active one is not")
  func silence() async {
    await #expect(processExitsWith: .success) {
      let (directory, place) = try sharedDirectory()
      var limits = MessagePort.Limits()
      limits.otherUsers.silence = .seconds(2)
      let port = try MessagePort.Local(
        name: "a", directory: place, limits: limits, accepts: { _ in true }, handler: { _ in nil })
      onNewThread {
        try? RunLoop.current.add(port, forMode: .default)
        let loop = RunLoop.current
        let asking = startThread { () -> Bool in
          defer { loop.perform { RunLoop.current.stop() } }
          guard let own = try? RawClient(directory) else { return false }
          let child = try? asUser(hostile, beside: loop) {
            let speaking = try RawClient(directory)
            speaking.send(packet(MessageFrame(.request, token: 1)))
            _ = speaking.receive()
            let silent = try RawClient(directory)
            guard silent.awaitEnd() else { _exit(3) }
            // The active connection is still served.
            speaking.send(packet(MessageFrame(.request, token: 2)))
            guard speaking.receive() == packet(MessageFrame(.noReply, token: 2)) else { _exit(4) }
          }
          guard let child else { return false }
          awaitReadable(child.done.reading)
          let isRight = child.done.read() == [7] && port.statistics.silentCount == 1
          waitUntil { port.connectionCount <= 2 }
          child.end.closeWriting()
          waitpid(child.child, nil, 0)
          withExtendedLifetime(own) {}
          return isRight
        }
        RunLoop.current.runUntilStopped()
        #expect(asking.result())
      }
    }
  }

  @Test("user 65534 is an ordinary user if all users have ids, and never matches if some have none")
  func overflow() async {
    // In its own process: a fork amid other tests' threads could leave their locks held in the child.
    await #expect(processExitsWith: .success) {
      let all = crl_overflow_user() < 0
      #expect(
        inForkedChild {
          guard setgid(65_534) == 0, setuid(65_534) == 0 else { return 1 }
          return MessagePort.Credentials(process: 1, user: 65_534, group: 65_534).isSameUser == all ? 0 : 2
        } == .exited(0))
      // In its own user namespace, where no user has an id. Some systems do not permit one.
      #expect(
        inForkedChild {
          guard leaveNamespaces(0x1000_0000) == 0 else { return 0 }
          guard geteuid() == 65_534, crl_overflow_user() == 65_534 else { return 3 }
          return MessagePort.Credentials(process: 1, user: 65_534, group: 65_534).isSameUser ? 2 : 0
        } == .exited(0))
    }
  }
}

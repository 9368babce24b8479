// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Requests that spin before they sleep", .timeLimit(.minutes(20)))
struct MessagePortLookTests {
  /// A policy that spins for 50 microseconds in its next wait on any thread.
  private static let eager: Looker = {
    var policy = LookPolicy()
    for _ in 0..<8 { policy.noteSleep(idle: 0, latency: 100_000, limit: 50_000) }
    return Looker(policy, .free)
  }()

  /// Makes the calling thread's requests spin.
  private func lookEagerly(_ remote: MessagePort.Remote) {
    remote.lookingThread = pthread_self()
    remote.looker = Self.eager
  }

  @Test("a request that has spun without a reply sleeps, and gets its reply")
  func inVain() throws {
    let directory = try PortDirectory()
    let hold = Latch()
    let server = try PortServer(directory) { _ in
      hold.wait()
      return MessagePort.Reply([7])
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let thread = Box<Int32>(0)
    let waiter = startThread {
      lookEagerly(remote)
      thread.value = RunLoop.callingThreadID
      return try? remote.send(id: 1, receiveTimeout: nil)?.bytes
    }
    waitUntil { thread.value != 0 && System.isAsleep(thread: thread.value) }
    hold.open()
    #expect(waiter.result() == [7])
    #expect(remote.looker.policy.pause > 0)
    #expect(server.port.isValid)
  }

  @Test("requests that spin all get a reply, either while spinning or later")
  func answered() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { request in MessagePort.Reply(request.bytes) }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    for turn in 0..<500 {
      lookEagerly(remote)
      let byte = UInt8(truncatingIfNeeded: turn)
      #expect(try remote.send(id: 1, bytes: [byte], receiveTimeout: nil)?.bytes == [byte])
    }
    #expect(server.port.statistics.replyCount == 500)
  }

  @Test("spinning ends with the port, and with the timeout")
  func ends() throws {
    let directory = try PortDirectory()
    let hold = Latch()
    let server = try PortServer(directory) { _ in
      hold.wait()
      return nil
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    lookEagerly(remote)
    #expect(
      portError { () throws(MessagePortError) in
        _ = try remote.send(id: 1, receiveTimeout: .microseconds(20))
      } == .receiveTimedOut)
    remote.invalidate()
    lookEagerly(remote)
    #expect(
      portError { () throws(MessagePortError) in _ = try remote.send(id: 1, receiveTimeout: nil) } == .invalid)
    hold.open()
    #expect(server.port.isValid)
  }

  @Test("a reply contains its time of sending, from which the requester learns the cost of a sleep")
  func cost() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { _ in nil }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    // A reply that arrived before any thread slept does not update the cost.
    while remote.looker.policy.cost == 0 { _ = try remote.send(id: 1, receiveTimeout: nil) }
    #expect(server.port.isValid)
  }

  @Test("the time of a reply is exact for four seconds", arguments: [0, 1, 4_000_000_000])
  func time(age: Int64) {
    for now: Int64 in [5_000_000_000, 1 << 32, (1 << 33) + 17, .max / 2] {
      let time = MessageFrame.time(of: now - age)
      #expect(MessageFrame.nanoseconds(of: time, receivedAt: now) == now - age)
    }
  }
}

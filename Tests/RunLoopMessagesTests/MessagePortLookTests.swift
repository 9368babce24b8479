// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Requests that look before they sleep", .timeLimit(.minutes(20)))
struct MessagePortLookTests {
  /// One that looks for 50 microseconds in its next wait, wherever it runs.
  private static let eager: Looker = {
    var policy = LookPolicy()
    for _ in 0..<8 { policy.noteSleep(idle: 0, latency: 100_000, limit: 50_000) }
    return Looker(policy, .free)
  }()

  /// Makes the looker of the calling thread's requests.
  private func lookEagerly(_ remote: MessagePort.Remote) {
    remote.lookingThread = pthread_self()
    remote.looker = Self.eager
  }

  @Test("a request that has looked in vain sleeps, and gets its reply")
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

  @Test("requests that look are all answered, in time or behind the look")
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

  @Test("a look ends with the port, and with the time to wait")
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

  @Test("an answer says when it was sent, from which a requester learns what a sleep and a wake cost")
  func cost() throws {
    let directory = try PortDirectory()
    let server = try PortServer(directory) { _ in nil }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    // One answer that came before anybody slept teaches nothing.
    while remote.looker.policy.cost == 0 { _ = try remote.send(id: 1, receiveTimeout: nil) }
    #expect(server.port.isValid)
  }

  @Test("the time of an answer is exact for four seconds", arguments: [0, 1, 4_000_000_000])
  func time(age: Int64) {
    for now: Int64 in [5_000_000_000, 1 << 32, (1 << 33) + 17, .max / 2] {
      let time = MessageFrame.time(of: now - age)
      #expect(MessageFrame.nanoseconds(of: time, receivedAt: now) == now - age)
    }
  }
}

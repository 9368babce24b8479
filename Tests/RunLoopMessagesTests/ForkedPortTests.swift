// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestRules
import TestSupport
import Testing

@testable import RunLoopMessages
@testable import RunLoopSystemEvents

/// Each test forks in its own process, which has few threads.
@Suite("Message ports in forked children", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct ForkedPortTests {
  @Test("a child neither ends nor uses the ports of its parent, and removes no names", .rule(.m17))
  func parents() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      #expect(try remote.send(id: 1, bytes: [1], receiveTimeout: .unlimited)?.bytes == [1])
      var unused: MessagePort.Local? = try MessagePort.Local(name: "b", directory: directory.place) { _ in nil }
      let code = inForkedChild {
        let port = server.port
        guard !port.isValid, !remote.isValid, unused?.isValid == false else { return 1 }
        guard port.connectionCount == 0, port.statistics == .init(), remote.statistics == .init() else { return 2 }
        guard portError({ () throws(MessagePortError) in try remote.send(id: 1) }) == .invalid else { return 3 }
        let request = portError { () throws(MessagePortError) in try remote.send(id: 1, receiveTimeout: .seconds(1)) }
        guard request == .invalid else { return 4 }
        guard portError({ () throws(MessagePortError) in try RunLoop.current.add(port, forMode: .default) }) == .invalid
        else { return 5 }
        guard portError(remote.awaitNothing) == .invalid else { return 6 }
        RunLoop.current.remove(port, forMode: .default)
        guard !RunLoop.current.contains(remote, forMode: .default) else { return 7 }
        let told = Notes<Int>()
        port.observeInvalidation { _ in told.add(1) }
        try remote.observeInvalidation { _ in told.add(2) }
        guard told.all == [1, 2] else { return 8 }
        guard !port.debugDescription.isEmpty, !remote.debugDescription.isEmpty else { return 9 }
        port.invalidate()
        remote.invalidate()
        unused = nil
        return directory.entries == ["a", "a.lock", "b", "b.lock"] ? 0 : 10
      }
      #expect(code == .exited(0))
      #expect(directory.entries == ["a", "a.lock", "b", "b.lock"])
      #expect(unused?.isValid == true)
      #expect(try remote.send(id: 2, bytes: [2], receiveTimeout: .unlimited)?.bytes == [2])
      #expect(server.port.connectionCount == 1)
    }
  }

  @Test("a child may send with its own ports, even to its parent, which notices when it dies", .rule(.m17))
  func own() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      // The package's own thread runs in the parent, and does not exist in the child.
      _ = ServiceThread.loop
      let code = inForkedChild {
        let undelivered = Notes<UInt64>()
        // A report about undelivered messages needs the child's own service thread.
        let remote = try MessagePort.Remote(
          name: "a", directory: directory.place, undelivered: { undelivered.add($0.serial) })
        guard try remote.send(id: 1, bytes: [7], receiveTimeout: .seconds(200))?.bytes == [7] else { return 1 }
        let own = try MessagePort.Local(name: "b", directory: directory.place) { MessagePort.Reply($0.bytes + [0]) }
        try RunLoop.current.add(own, forMode: .default)
        let loop = RunLoop.current
        let asking = startThread { () -> [UInt8]? in
          defer { loop.perform { loop.stop() } }
          let remote = try? MessagePort.Remote(name: "b", directory: directory.place)
          return (try? remote?.send(id: 1, bytes: [8], receiveTimeout: .seconds(200)))??.bytes
        }
        loop.runUntilStopped()
        own.invalidate()
        return asking.result() == [8, 0] && undelivered.count == 0 ? 0 : 2
      }
      #expect(code == .exited(0))
      while server.port.connectionCount > 0 { sched_yield() }
      #expect(directory.entries == ["a", "a.lock"])
    }
  }

  @Test("a child that is forked in a call-out does not reply for its parent", .rule(.m17))
  func callOut() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let codes = Notes<ForkedEnd>()
      let server = try PortServer(
        directory,
        handler: { request in
          codes.add(
            inForkedChild {
              request.reply(MessagePort.Reply([9]))
              return 0
            })
          return MessagePort.Reply([1])
        })
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      #expect(try remote.send(id: 1, receiveTimeout: .unlimited)?.bytes == [1])
      #expect(codes.all == [.exited(0)] && server.port.statistics.replyCount == 1)
    }
  }
}

extension MessagePort.Remote {
  /// Waits for all outstanding confirmations.
  fileprivate func awaitNothing() throws(MessagePortError) { try awaitConfirmations(timeout: .seconds(1)) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestRules
import TestSupport
import Testing

@testable import RunLoopPorts

/// Each test forks in a process of its own, which has few threads.
@Suite("Message ports and sources in forked children", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
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
        guard port.connections == 0, port.statistics == .init(), remote.statistics == .init() else { return 2 }
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
      #expect(server.port.connections == 1)
    }
  }

  @Test("a child sends with ports of its own, to its parent too, and is noticed by it when it dies", .rule(.m17))
  func own() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      // The package's own thread runs in the parent, and is not there in the child.
      _ = MessageService.loop
      let code = inForkedChild {
        let undelivered = Notes<UInt64>()
        // Somebody wants to know of what is not delivered: the child's own service is asked.
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
      while server.port.connections > 0 { sched_yield() }
      #expect(directory.entries == ["a", "a.lock"])
    }
  }

  @Test("a child that is forked in a call-out does not answer for its parent", .rule(.m17))
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
      #expect(codes.all == [.exited(0)] && server.port.statistics.replies == 1)
    }
  }

  @Test("a child hears its own signals, and takes none of its parent's", .rule(.m17))
  func signals() async {
    await #expect(processExitsWith: .success) {
      SourceRig.onThread { loop in
        do {
          let heard = Notes<Int>()
          let source = try SignalSource(signal: SIGUSR1) { _, event in heard.add(event.count) }
          try loop.add(source, forMode: .default)
          // It has come, and is told by the parent's loop alone.
          kill(getpid(), SIGUSR1)
          let code = inForkedChild {
            guard !source.isValid, socketFailure({ try RunLoop.current.add(source, forMode: .default) }) != "nothing"
            else { return 1 }
            source.invalidate()
            let own = Notes<Int>()
            let ownSource = try SignalSource(signal: SIGUSR1) { _, event in own.add(event.count) }
            try RunLoop.current.add(ownSource, forMode: .default)
            kill(getpid(), SIGUSR1)
            RunLoop.current.run { own.count > 0 }
            return own.all == [1] ? 0 : 2
          }
          #expect(code == .exited(0))
          loop.run { heard.count > 0 }
          loop.drain()
          #expect(heard.all == [1])
          source.invalidate()
        } catch { Issue.record(error) }
      }
    }
  }

  @Test("a child takes none of the file changes that its parent waits for", .rule(.m17))
  func files() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      SourceRig.onThread { loop in
        do {
          let told = Notes<String>()
          var source: FileChangeSource? = try FileChangeSource(path: .init(directory.path)) { _, changes in
            for change in changes { told.add(change.path.string) }
          }
          if let source { try loop.add(source, forMode: .default) }
          let code = inForkedChild {
            guard let inherited = source, !inherited.isValid, inherited.watchCount == 0 else { return 1 }
            guard socketFailure({ try RunLoop.current.add(inherited, forMode: .default) }) != "nothing" else {
              return 2
            }
            inherited.invalidate()
            source = nil
            return mkdir(directory.path + "/ports", 0o700)
          }
          #expect(code == .exited(0) && source?.watchCount == 1)
          loop.run { told.count > 0 }
          #expect(told.all == [directory.path + "/ports"])
          source?.invalidate()
        } catch { Issue.record(error) }
      }
    }
  }

  @Test("a child waits for children of its own, and its parent's are none of its", .rule(.m17))
  func children() async {
    await #expect(processExitsWith: .success) {
      let first = spawn("/bin/sleep", "1000")
      SourceRig.onThread { loop in
        do {
          let ends = Notes<ChildProcessSource.End>()
          let source = try ChildProcessSource(process: first) { _, end in ends.add(end) }
          try loop.add(source, forMode: .default)
          let code = inForkedChild {
            guard !source.isValid else { return 1 }
            do throws(ChildProcessError) {
              _ = try ChildProcessSource(process: first) { _, _ in }
              return 2
            } catch { guard error == .notAChild(first) else { return 3 } }
            let ends = Notes<ChildProcessSource.End>()
            let own = try ChildProcessSource(process: spawn("/bin/sh", "-c", "exit 7")) { _, end in ends.add(end) }
            try RunLoop.current.add(own, forMode: .default)
            RunLoop.current.run { ends.count > 0 }
            return ends.all == [.success(.exited(code: 7))] ? 0 : 4
          }
          #expect(code == .exited(0))
          kill(first, SIGKILL)
          loop.run { ends.count > 0 }
          #expect(ends.all == [.success(.signalled(signal: SIGKILL, coreDumped: false))])
        } catch { Issue.record(error) }
      }
    }
  }
}

extension MessagePort.Remote {
  /// Waits for confirmations of whatever there is.
  fileprivate func awaitNothing() throws(MessagePortError) { try awaitConfirmations(timeout: .seconds(1)) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopMessages

/// Each test has its own process, because an overflow of a date plus a duration would trap.
@Suite("Message ports with durations beyond the range of the clock", .timeLimit(.minutes(20)))
struct LongDurationTests {
  private static let long = Duration(attoseconds: .max)

  @Test("a message with such a timeout is replied to, on a thread, a loop and in a task")
  func message() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let server = try PortServer(directory)
      let remote = try MessagePort.Remote(name: "a", directory: directory.place, connectTimeout: Self.long)
      for mode in [nil, RunLoop.Mode.default] {
        let reply = try remote.send(
          id: 1, bytes: [5], sendTimeout: Self.long, receiveTimeout: Self.long, replyMode: mode)
        #expect(reply?.bytes == [5])
      }
      let reply = try await remote.request(id: 1, bytes: [6], timeout: Self.long)
      #expect(reply?.bytes == [6])
      server.stop()
    }
  }

  @Test("a wait for a name with a deadline before the clock's start returns immediately")
  func longPast() async {
    await #expect(processExitsWith: .success) {
      let directory = try PortDirectory()
      let past = Duration(secondsComponent: .min, attosecondsComponent: 0)
      #expect(throws: MessagePortError.self) {
        try MessagePort.Remote(name: "a", waitingFor: past, directory: directory.place)
      }
      await #expect(throws: MessagePortError.self) {
        try await MessagePort.Remote.connection(to: "a", waitingFor: past, directory: directory.place)
      }
    }
  }

  @Test("a port lets another user be silent for such a time", .enabled(if: geteuid() == 0, "only root can"))
  func silence() async {
    await #expect(processExitsWith: .success) {
      let (directory, place) = try sharedDirectory()
      var limits = MessagePort.Limits()
      limits.otherUsers.silence = Self.long
      let port = try MessagePort.Local(
        name: "a", directory: place, limits: limits, accepts: { _ in true }, handler: { _ in MessagePort.Reply([7]) })
      let serving = SourceRig.startLoop()
      try serving.loop.add(port, forMode: .default)
      let other = try asUser(friendly, beside: serving.loop) {
        let remote = try MessagePort.Remote(name: "a", directory: place, accepts: { _ in true })
        guard try remote.send(id: 1, receiveTimeout: .unlimited)?.bytes == [7] else { _exit(3) }
      }
      awaitReadable(other.done.reading)
      #expect(other.done.read() == [7])
      other.end.closeWriting()
      waitpid(other.child, nil, 0)
      port.invalidate()
      serving.loop.perform { RunLoop.current.stop() }
      serving.thread.join()
      withExtendedLifetime(directory) {}
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopPorts

@Suite("Waiting for the name of a message port", .timeLimit(.minutes(5)))
struct MessagePortNameWaitTests {
  @Test("a thread that waits connects when the port is there, whose directory was not")
  func thread() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let tried = Latch()
    let client = Task.detached {
      await elsewhere {
        tried.open()
        return Result { () throws(MessagePortError) in
          try MessagePort.Remote(name: "a", waitingFor: .seconds(1000), directory: place)
        }
      }
    }
    await elsewhere { tried.wait() }
    let port = try MessagePort.Local(name: "a", directory: place) { _ in nil }
    #expect(try await client.value.get().isValid)
    withExtendedLifetime(port) {}
  }

  @Test("a task that waits connects when the port is there")
  func task() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let client = Task { try await MessagePort.Remote.connection(to: "a", waitingFor: .seconds(1000), directory: place) }
    await Task.yield()
    let port = try MessagePort.Local(name: "a", directory: place) { _ in nil }
    #expect(try await client.value.isValid)
    withExtendedLifetime(port) {}
  }

  @Test("without a port the error comes when the time is over, and not before")
  func timeIsOver() async throws {
    let directory = try PortDirectory()
    let begin = Tick.monotonicNow
    #expect(
      portError { () throws(MessagePortError) in
        try MessagePort.Remote(name: "a", waitingFor: .milliseconds(20), directory: directory.place)
      } == .noSuchPort("a"))
    #expect(Tick.monotonicNow >= begin + 20_000_000)
    await #expect(throws: MessagePortError.noSuchPort("a")) {
      try await MessagePort.Remote.connection(to: "a", waitingFor: .milliseconds(20), directory: directory.place)
    }
    #expect(Tick.monotonicNow >= begin + 40_000_000)
  }

  @Test("a task that is cancelled waits no longer, and a name that cannot be is not waited for")
  func cancelled() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let client = Task { try await MessagePort.Remote.connection(to: "a", waitingFor: .seconds(1000), directory: place) }
    client.cancel()
    await #expect(throws: MessagePortError.cancelled) { try await client.value }
    await #expect(throws: MessagePortError.invalidName("..")) {
      try await MessagePort.Remote.connection(to: "..", waitingFor: .seconds(1000), directory: place)
    }
  }
}

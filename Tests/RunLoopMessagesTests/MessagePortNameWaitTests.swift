// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Waiting for the name of a message port", .timeLimit(.minutes(20)))
struct MessagePortNameWaitTests {
  @Test("a waiting thread connects when the port appears, even if its directory did not exist")
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

  @Test("a waiting task connects when the port appears")
  func task() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let client = Task { try await MessagePort.Remote.connection(to: "a", waitingFor: .seconds(1000), directory: place) }
    await Task.yield()
    let port = try MessagePort.Local(name: "a", directory: place) { _ in nil }
    #expect(try await client.value.isValid)
    withExtendedLifetime(port) {}
  }

  @Test("without a port the error is thrown at the timeout, and not before")
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

  @Test("a cancelled task stops waiting, and an impossible name is not waited for")
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

  /// Creates a receiver that has room for one more connection than it has accepted, and connects that one.
  private func fullListener(_ directory: PortDirectory) throws -> (MessagePort.Descriptor, RawClient) {
    _ = try directory.place.open(making: true)
    let listener = MessagePort.Descriptor(owning: crl_message_socket())
    try #require(crl_message_bind(listener.number, directory.place.path + "/a") == 0)
    try #require(listen(listener.number, 0) == 0)
    return (listener, try RawClient(directory))
  }

  @Test("a task waits for room for its connection, whose socket blocks again afterwards")
  func room() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let (listener, first) = try fullListener(directory)
    let begin = Tick.monotonicNow
    await #expect(throws: MessagePortError.sendTimedOut) {
      try await MessagePort.Remote.connection(
        to: "a", waitingFor: .zero, directory: place, connectTimeout: .milliseconds(20))
    }
    #expect(Tick.monotonicNow >= begin + 20_000_000)
    #expect(
      portError { () throws(MessagePortError) in
        try MessagePort.Remote(name: "a", directory: place, connectTimeout: .zero)
      } == .sendTimedOut)
    let client = Task {
      try await MessagePort.Remote.connection(
        to: "a", waitingFor: .zero, directory: place, connectTimeout: .seconds(1000))
    }
    await Task.yield()
    let accepted = MessagePort.Descriptor(owning: crl_accept(listener.number))
    let remote = try await client.value
    #expect(fcntl(remote.socket.number, F_GETFL) & O_NONBLOCK == 0)
    withExtendedLifetime((listener, first, accepted)) {}
  }

  @Test("a cancelled task stops waiting for room")
  func cancelledWithoutRoom() async throws {
    let directory = try PortDirectory()
    let place = directory.place
    let (listener, first) = try fullListener(directory)
    let client = Task {
      try await MessagePort.Remote.connection(
        to: "a", waitingFor: .zero, directory: place, connectTimeout: .seconds(20))
    }
    client.cancel()
    await #expect(throws: MessagePortError.cancelled) { try await client.value }
    withExtendedLifetime((listener, first)) {}
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("A listening socket for the duration of a closure", .timeLimit(.minutes(20)))
struct WithListeningSocketTests {
  struct Failure: Error {}

  /// A listening socket within a closure that has accepted a connection, observed from outside.
  private struct Serving: Sendable {
    let thread = SocketThread()
    let cut = Box<Int?>(nil)
    let ends = Box<(client: Socket, server: Socket)?>(nil)
    let kept = Box<ListeningSocket?>(nil)

    func start<Result: Sendable>(
      _ body: @escaping @Sendable () async throws -> Result
    ) -> Task<Result, any Error> {
      Task {
        try await withListeningSocket(at: .loopback(port: 0), on: thread.loop, report: { cut.value = $0 }) { listener in
          kept.value = listener
          let client = try Socket(connectingTo: listener.address)
          try thread.loop.add(client, forMode: .default)
          let server = try #require(try await listener.accept())
          try thread.loop.add(server, forMode: .default)
          ends.value = (client, server)
          return try await body()
        }
      }
    }
  }

  private func eventually(_ condition: () -> Bool) async { while !condition() { await Task.yield() } }

  @Test("connections continue to their end when the closure returns, and then the socket is closed")
  func returns() async throws {
    let serving = Serving()
    let task = serving.start { 42 }
    await eventually { serving.ends.value != nil && serving.kept.value?.isValid == false }
    let (client, server) = try #require(serving.ends.value)
    try await server.send([7])
    #expect(try await client.receive() == [7])
    #expect(serving.cut.value == nil)
    client.invalidate()
    server.invalidate()
    #expect(try await task.value == 42)
    #expect(serving.cut.value == 0)
    serving.thread.stop()
  }

  @Test(
    "connections are cut when the closure throws, or its task is cancelled during or after it",
    arguments: ["throw", "cancel", "cancel late"])
  func failing(_ way: String) async throws {
    let serving = Serving()
    let task = serving.start {
      if way == "throw" { throw Failure() }
      if way == "cancel" { try await Task.sleep(for: .seconds(1000)) }
    }
    await eventually { serving.ends.value != nil }
    if way == "cancel late" { await eventually { serving.kept.value?.isValid == false } }
    if way != "throw" { task.cancel() }
    let result = await task.result
    if way == "cancel late" { try result.get() } else { #expect(throws: (any Error).self) { try result.get() } }
    #expect(serving.cut.value == 1)
    #expect(serving.kept.value?.isValid == false)
    let client = try #require(serving.ends.value?.client)
    #expect((try? await client.receive()) == nil)
    serving.thread.stop()
  }

  @Test("an address in use and a loop that has ended are reported, and no socket listens")
  func rejected() async throws {
    let thread = SocketThread()
    try await withListeningSocket(at: .loopback(port: 0), on: thread.loop) { listener -> Void in
      await #expect(throws: SocketError.self) {
        try await withListeningSocket(at: listener.address, on: thread.loop) { _ in }
      }
    }
    thread.stop()
    let cut = Box<Int?>(nil)
    await #expect(throws: RunLoopError.loopHasEnded) {
      try await withListeningSocket(at: .loopback(port: 0), on: thread.loop, report: { cut.value = $0 }) { _ in }
    }
    #expect(cut.value == 0)
  }
}

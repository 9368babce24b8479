// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Testing
import TestSupport

@testable import RunLoopHTTP

@Suite("A client for the duration of a closure")
struct WithHTTPClientTests {
  struct Failure: Error {}

  /// A server that responds to /wait when the test allows it, and to anything else immediately.
  final class SlowServer: Sendable {
    let waiting: Box<[LyingServer.Exchange]>
    let server: LyingServer

    init() throws {
      let waiting = Box<[LyingServer.Exchange]>([])
      self.waiting = waiting
      server = try LyingServer { exchange in
        if exchange.path == "/wait" { waiting.update { $0.append(exchange) } } else { exchange.answer("body") }
      }
    }

    func respond() { for exchange in waiting.value { exchange.answer("late") } }
  }

  @Test("requests are complete when the closure returns, and the client has ended")
  func returns() async throws {
    let server = try SlowServer()
    let (report, kept) = (Box<HTTP.StopReport?>(nil), Box<HTTP.Client?>(nil))
    let late = Box<Task<[UInt8], any Error>?>(nil)
    let task = Task {
      try await withHTTPClient(report: { report.value = $0 }) { client in
        kept.value = client
        late.value = Task { try await client.data(for: HTTP.Request(server.server.url("/wait"))).0.bytes }
        await eventually { server.waiting.value.count == 1 }
        return try await client.data(for: HTTP.Request(server.server.url())).0.bytes
      }
    }
    await eventually { kept.value?.state == .draining }
    server.respond()
    #expect(try await task.value == Array("body".utf8))
    #expect(try await late.value?.value == Array("late".utf8))
    #expect(report.value == HTTP.StopReport(completedCount: 2))
    #expect(kept.value?.state == .finished)
  }

  @Test(
    "pending requests are stopped when the closure throws, or its task is cancelled during or after it",
    arguments: ["throw", "cancel", "cancel late"])
  func failing(_ way: String) async throws {
    let server = try SlowServer()
    let (report, kept) = (Box<HTTP.StopReport?>(nil), Box<HTTP.Client?>(nil))
    let late = Box<Task<Void, any Error>?>(nil)
    let task = Task {
      try await withHTTPClient(report: { report.value = $0 }) { client in
        kept.value = client
        late.value = Task { _ = try await client.data(for: HTTP.Request(server.server.url("/wait"))) }
        await eventually { server.waiting.value.count == 1 }
        if way == "throw" { throw Failure() }
        if way == "cancel" { try await Task.sleep(for: .seconds(1000)) }
      }
    }
    await eventually { server.waiting.value.count == 1 }
    if way == "cancel late" { await eventually { kept.value?.state == .draining } }
    if way != "throw" { task.cancel() }
    let result = await task.result
    if way == "cancel late" { try result.get() } else { #expect(throws: (any Error).self) { try result.get() } }
    #expect(report.value == HTTP.StopReport(stoppedCount: 1))
    #expect(kept.value?.state == .finished)
    let outcome = try #require(await late.value?.result)
    #expect(throws: HTTP.Error.self) { try outcome.get() }
  }

  @Test("on the program's own loop the client has no thread, and the loop continues")
  func onLoop() async throws {
    let server = try SlowServer()
    let thread = try ResidentThread(name: "client")
    let body = try await withHTTPClient(on: thread.runLoop) { client in
      try await client.data(for: HTTP.Request(server.server.url())).0.bytes
    }
    #expect(body == Array("body".utf8))
    #expect(try await thread.run { 1 } == 1)
    thread.stop()
    _ = await thread.finished()
  }
}

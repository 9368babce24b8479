// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The handles kept for the next requests.
@Suite struct SpareHandleTests {
  private static let settings = OwnConfiguration(HTTP.Configuration())

  private static let begin = Tick(nanoseconds: 5)

  private static func make() throws -> Handle { try #require(Handle()) }

  private static func shape(isTLS: Bool = false) -> Handle.Shape {
    Handle.Shape(settings: settings, isTLS: isTLS, isFresh: false, addresses: [])
  }

  @Test("as many handles are kept as were in use at once, until a period passes without that use")
  func bound() throws {
    try CurlLibrary.open()
    var spare = SpareHandles()
    var used: [Handle] = []
    for number in 0..<40 {
      let none = spare.take(nil, inUse: number)
      #expect(none == nil)
      used.append(try Self.make())
    }
    #expect(spare.due == .never)
    for handle in used { spare.put(handle, now: Self.begin) }
    #expect(spare.count == 40)
    #expect(spare.due == Self.begin + SpareHandles.period)
    spare.trim(inUse: 0, now: spare.due)
    #expect(spare.count == 40)
    // One handle is needed occasionally.
    let found = spare.take(nil, inUse: 0)
    let handle = try #require(found)
    spare.put(handle, now: spare.due)
    spare.trim(inUse: 0, now: spare.due)
    #expect(spare.count == 1)
    spare.trim(inUse: 0, now: spare.due)
    #expect(spare.count == 0)
    #expect(spare.due == .never)
  }

  @Test("there are never more spare handles than the limit")
  func limit() throws {
    try CurlLibrary.open()
    var spare = SpareHandles()
    for _ in 0..<SpareHandles.limit + 1 { spare.put(try Self.make(), now: Self.begin) }
    #expect(spare.count == SpareHandles.limit)
    spare.freeAll()
    #expect(spare.count == 0)
    #expect(spare.due == .never)
  }

  @Test("a spare handle stays configured for requests of its kind only")
  func shapes() throws {
    try CurlLibrary.open()
    var spare = SpareHandles()
    let handle = try Self.make()
    handle.shape = Self.shape()
    spare.put(handle, now: Self.begin)
    var taken = spare.take(Self.shape(), inUse: 0)
    #expect(taken === handle && taken?.shape == Self.shape())
    spare.put(handle, now: Self.begin)
    taken = spare.take(Self.shape(isTLS: true), inUse: 0)
    #expect(taken === handle && taken?.shape == nil)
    handle.shape = Self.shape()
    spare.put(handle, now: Self.begin)
    taken = spare.take(nil, inUse: 0)
    #expect(taken === handle && taken?.shape == nil)
    #expect(
      Self.shape()
        != Handle.Shape(
          settings: OwnConfiguration(HTTP.Configuration()), isTLS: false, isFresh: false, addresses: []))
    handle.free()
  }

  @Test("a spare handle keeps neither the program's headers nor a URL with a query")
  func secrets() throws {
    try CurlLibrary.open()
    var spare = SpareHandles()
    let handle = try Self.make()
    func rest(_ fields: [HTTP.Headers.Field], _ url: String) {
      #expect(handle.set(fields: fields, hasBody: false, isTunneled: false) == 0)
      #expect(handle.set(url: url) == 0)
      handle.shape = Self.shape()
      spare.put(handle, now: Self.begin)
      #expect(spare.take(Self.shape(), inUse: 0) === handle)
    }
    let usual = Self.settings.usualFields
    rest(usual, "http://a/b")
    #expect(handle.knownFields == usual && handle.knownURL == "http://a/b")
    for name in ["Authorization", "Cookie", "X-Token"] {
      rest(usual + [.init(name, "secret")], "http://a/b?secret")
      #expect(handle.knownFields == nil && handle.knownURL.isEmpty)
    }
    spare.put(handle, now: Self.begin)
    spare.freeAll()
  }

  @Test("any number of consecutive requests may each find a kept connection that has ended")
  func retries() async throws {
    let server = try LyingServer { exchange in
      if exchange.number == 0 { exchange.answer("hello") } else { exchange.close() }
    }
    try await withClient { client in
      #expect(await ends(client, HTTP.Request(server.url()), times: 20) == [String](repeating: "200 hello", count: 20))
    }
  }

  @Test("an error does not name the error number of an earlier request")
  func systemErrors() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/cut" { exchange.close() } else { exchange.answer("hello") }
    }
    let port = try #require(UInt16(server.url().split(separator: ":").last?.dropLast() ?? ""))
    try await withClient { client in
      let core = client.core
      // The first request starts the client. Nothing listens on the first address of the second.
      #expect(await end(client, HTTP.Request(server.url())) == "200 hello")
      let addresses = try ["127.0.0.2", "127.0.0.1"].map { try SocketAddress(host: $0, port: port) }
      core.post { core.names.note("two.test", port, addresses, now: core.now) }
      #expect(await end(client, HTTP.Request("http://two.test:\(port)/")) == "200 hello")
      core.post { core.names.note("two.test", port, [addresses[1]], now: core.now) }
      let error = await #expect(throws: HTTP.Error.self) {
        try await client.data(for: HTTP.Request("http://two.test:\(port)/cut"))
      }
      #expect(error?.code == .connectionLost)
      #expect(error.map { !$0.detail.contains("refused") && !$0.detail.contains("ECONN") } == true, "\(error as Any)")
    }
  }

  @Test("an idle client releases its spare handles")
  func resting() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let thread = try ResidentThread(name: "resting")
    let client = HTTP.Client(HTTP.Configuration(), on: thread.runLoop)
    let (ended, most) = (Counter(), Box(0))
    for _ in 0..<50 {
      let operation = client.operation(HTTP.Request(server.url()), on: thread.runLoop)
      operation.onCompletion(on: .immediately) { _ in
        most.update { $0 = max($0, client.core.spareCount) }
        ended.add()
      }
      operation.start()
    }
    await eventually { ended.value == 50 }
    #expect(most.value > 0)
    await eventually { (try? thread.performAndWait { client.core.spareCount }) == 0 }
    client.stop()
    _ = await client.finished()
    thread.stop()
  }

  @Test("a request has no settings of the previous one")
  func leftovers() async throws {
    let server = try LyingServer { exchange in
      let fields = ["A", "B", "Content-Length", "Expect", "Transfer-Encoding"].map { exchange.field($0) ?? "-" }
      exchange.answer("\(exchange.line) \(fields.joined(separator: " ")) \(exchange.body.count)")
    }
    try await withClient { client in
      func ask(
        _ path: String, _ method: HTTP.Method = .get, _ headers: HTTP.Headers = [:], body: HTTP.Content? = nil
      ) async -> String {
        await end(client, HTTP.Request(method, server.url(path), headers: headers, body: body))
      }
      #expect(await ask("/1", .get, ["A": "a"]) == "200 GET /1 a - - - - 0")
      #expect(await ask("/1", .get, ["A": "a"]) == "200 GET /1 a - - - - 0")
      #expect(await ask("/2") == "200 GET /2 - - - - - 0")
      #expect(await ask("/2", .get, ["B": "b"]) == "200 GET /2 - b - - - 0")
      #expect(await ask("/3", .post, body: .bytes([1, 2, 3])) == "200 POST /3 - - 3 - - 3")
      #expect(await ask("/4") == "200 GET /4 - - - - - 0")
      #expect(await ask("/5", .delete, ["A": "x"]) == "200 DELETE /5 x - - - - 0")
      #expect(await ask("/6", .head) == "200 ")
      #expect(await ask("/7", .get, body: .bytes([9])) == "200 GET /7 - - 1 - - 1")
      #expect(await ask("/8") == "200 GET /8 - - - - - 0")
    }
    #expect(server.requests.value.count == 10)
  }
}

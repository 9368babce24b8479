// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopHTTP
import RunLoopSockets
import RunLoopTesting
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTPTesting

/// The server for tests of HTTP clients.
@Suite(.timeLimit(.minutes(20))) struct HTTPTestServerTests {
  typealias Response = HTTPTestServer.Response

  private static func options(_ change: (inout HTTPTestServer.Options) -> Void) -> HTTPTestServer.Options {
    var options = HTTPTestServer.Options()
    change(&options)
    return options
  }

  /// Sends bytes, and returns everything that the server sends until it closes the connection.
  private func answer(of server: HTTPTestServer, to text: String) async throws -> String {
    let thread = try ResidentThread()
    let client = try Socket(connectingTo: server.address)
    try thread.runLoop.add(client, forMode: .default)
    try await client.send(Array(text.utf8))
    var bytes: [UInt8] = []
    do {
      while let more = try await client.receive(atMost: 65_536) { bytes += more }
    } catch SocketError.system(let error, _) where error.number == ECONNRESET {
      bytes += Array("|reset".utf8)
    }
    client.invalidate()
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("the responses of a script are sent in order, and the last one repeatedly", arguments: [false, true])
  func script(_ isHTTP2: Bool) async throws {
    let server = try HTTPTestServer(
      options: Self.options { $0.http2 = isHTTP2 },
      script: [
        "/": [Response("one"), Response("two", status: 404, headers: ["X": "y"])], "POST /": [Response("three")],
      ])
    try await withClient {
      $0.version = isHTTP2 ? .http2 : .http1
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "200 one")
      #expect(await end(client, HTTP.Request(server.url())) == "404 two")
      let (_, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(response.headers["x"] == "y")
      #expect(await end(client, HTTP.Request(.head, server.url())) == "404 ")
      #expect(await end(client, HTTP.Request(.post, server.url(), body: .bytes(pattern(200_000)))) == "200 three")
      #expect(await end(client, HTTP.Request(server.url("/none?a=b"))) == "404 ")
    }
    #expect(server.requests.map(\.line) == ["GET /", "GET /", "GET /", "HEAD /", "POST /", "GET /none?a=b"])
    #expect(server.requests[4].body == pattern(200_000))
    #expect(server.requests.allSatisfy { $0.isHTTP2 == isHTTP2 && $0.header("HOST")?.hasPrefix("127.0.0.1:") == true })
    if !isHTTP2 { #expect(server.requests.map(\.number) == [0, 1, 2, 3, 4, 5]) }
  }

  @Test("a client chooses the protocol by ALPN", .enabled(if: TLSFiles.canBeMade), arguments: [false, true])
  func negotiation(_ isHTTP2: Bool) async throws {
    let identity = TLSIdentity(certificateFile: TLSFiles.path("server.pem"), keyFile: TLSFiles.path("server.key"))
    let options = Self.options {
      $0.tls = TLSServerConfiguration(identity: identity)
      $0.http2 = true
    }
    let server = try HTTPTestServer(options: options) { Response("\($0.isHTTP2) \($0.number) \($0.body.count)") }
    let large = HTTP.Content.bytes(pattern(1_000_000))
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
      $0.version = isHTTP2 ? .automatic : .http1
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url(host: "localhost"))) == "200 \(isHTTP2) 0 0")
      let post = HTTP.Request(.post, server.url(host: "localhost"), body: large)
      #expect(await end(client, post) == "200 \(isHTTP2) 1 1000000")
    }
    #expect(server.connectionCount == 1)
  }

  @Test(
    "a large body arrives completely, however the connection ends after it", .enabled(if: TLSFiles.canBeMade),
    arguments: [false, true])
  func largeBody(_ isHTTP2: Bool) async throws {
    let identity = TLSIdentity(certificateFile: TLSFiles.path("server.pem"), keyFile: TLSFiles.path("server.key"))
    let options = Self.options {
      $0.tls = isHTTP2 ? TLSServerConfiguration(identity: identity) : nil
      $0.http2 = isHTTP2
    }
    for ending: Response.Ending in [.keep, .goAway, .close, .halfClose] {
      let server = try HTTPTestServer(options: options) { _ in
        var response = Response(ending: ending)
        response.body = pattern(5_000_000)
        return response
      }
      try await withClient {
        $0.trust.roots = TLSFiles.path("ca.pem")
      } _: { client in
        let (body, _) = try await client.data(for: HTTP.Request(server.url()))
        #expect(body.bytes == pattern(5_000_000), "\(ending)")
      }
    }
  }

  @Test(
    "an invalid request gets a 400 response, and the connection ends",
    arguments: [
      "GET /\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "G\u{e4}T / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\r\n",
    ])
  func malformed(_ text: String) async throws {
    let server = try HTTPTestServer { _ in Response("hello") }
    let answer = try await answer(of: server, to: text)
    #expect(answer == "HTTP/1.1 400 Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    #expect(server.requests.isEmpty)
  }

  @Test(
    "a request that is too long gets a 413 response",
    arguments: [
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n",
    ])
  func tooLarge(_ text: String) async throws {
    let server = try HTTPTestServer(options: Self.options { $0.maximumBodySize = 10 }) { _ in Response("hello") }
    #expect(try await answer(of: server, to: text).hasPrefix("HTTP/1.1 413 Error\r\n"))
  }

  @Test(
    "headers that never end get a 413 response",
    arguments: zip(["GET /", "", "GET / HTTP/1.1\r\n"], ["a", "\r\n", "A: b\r\n"]))
  func endlessHead(_ start: String, _ rest: String) async throws {
    let server = try HTTPTestServer { _ in Response("hello") }
    let text = start + String(repeating: rest, count: 70_000 / rest.utf8.count)
    #expect(try await answer(of: server, to: text).hasPrefix("HTTP/1.1 413 Error\r\n"))
  }

  @Test("requests that arrive byte by byte or together are served in order")
  func pipelining() throws {
    let text =
      "\r\nGET /a HTTP/1.1\r\nHost: a\r\nA:  b \r\n\r\nPOST /b HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi"
      + "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n"
    for size in [1, 7, 1000] {
      var reader = RequestReader(bodyLimit: 100)
      var requests: [String] = []
      let bytes = Array(text.utf8)
      for start in stride(from: 0, to: bytes.count, by: size) {
        reader.append(bytes[start..<min(start + size, bytes.count)])
        while let request = try reader.next() {
          let body = String(decoding: request.body, as: UTF8.self)
          requests.append("\(request.method) \(request.target) \(request.values("a")) \(body) \(request.isKept)")
        }
      }
      #expect(requests == ["GET /a [\"b\"]  true", "POST /b [] hi false", "POST /c [] abcde true"])
      #expect(reader.isEmpty)
    }
  }

  @Test("responses have exactly the length they should, and then the connection ends as scripted")
  func parts() async throws {
    let server = try HTTPTestServer(script: [
      "/close": [Response("hello", ending: .close)], "/away": [Response("hello", ending: .goAway)],
      "/head": [Response("hello", part: .head, ending: .close)],
      "/body": [Response("hello", part: .body(2), ending: .halfClose)],
      "/nothing": [Response(part: .nothing, ending: .goAway)], "/rejected": [Response(ending: .reject)],
      "/reset": [Response("hello", part: .body(1), ending: .reset)],
    ])
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
    for (path, expected) in [
      ("close", head + "\r\nhello"), ("away", head + "Connection: close\r\n\r\nhello"), ("head", head + "\r\n"),
      ("body", head + "\r\nhe"), ("nothing", ""), ("rejected", ""), ("reset", head + "\r\nh|reset"),
    ] {
      #expect(try await answer(of: server, to: "GET /\(path) HTTP/1.1\r\nHost: a\r\n\r\n") == expected, "\(path)")
    }
  }

  @Test("a client that expects 100 receives it, and a connection that is not kept alive is closed")
  func continuation() async throws {
    let server = try HTTPTestServer { Response("\($0.body.count)") }
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n2"
    // With the body sent immediately, no wait occurs.
    #expect(try await self.answer(of: server, to: head + "hi") == answer)
    let thread = try ResidentThread()
    let client = try Socket(connectingTo: server.address)
    try thread.runLoop.add(client, forMode: .default)
    try await client.send(Array(head.utf8))
    let first = try await client.receive(atMost: 1000)
    #expect(first.map { String(decoding: $0, as: UTF8.self) } == "HTTP/1.1 100 Continue\r\n\r\n")
    try await client.send(Array("hi".utf8))
    let second = try await client.receive(atMost: 1000)
    #expect(second.map { String(decoding: $0, as: UTF8.self) } == answer)
    client.invalidate()
  }

  @Test("a connection takes up to its limit of requests, and a reload ends kept connections")
  func limits() async throws {
    let server = try HTTPTestServer(options: Self.options { $0.requestsPerConnection = 3 }) {
      Response("\($0.connection) \($0.number)")
    }
    try await withClient { client in
      let ends = await ends(client, HTTP.Request(server.url()), times: 4)
      #expect(ends == ["200 0 0", "200 0 1", "200 0 2", "200 1 0"])
      server.reload()
      await eventually { server.endedConnectionCount == 2 }
      #expect(await end(client, HTTP.Request(server.url())) == "200 2 0")
    }
  }

  @Test("a stop ends connections that wait for a response, and a second stop is safe")
  func stop() async throws {
    let server = try HTTPTestServer { $0.path == "/slow" ? Response(delay: .seconds(3600)) : nil }
    try await withClient { client in
      async let slow = end(client, HTTP.Request(server.url("/slow")))
      async let never = end(client, HTTP.Request(server.url("/never")))
      await eventually { server.requests.count == 2 }
      server.stop()
      #expect(await [slow, never] == ["connectionLost", "connectionLost"])
    }
    server.stop()
    server.reload()
    for request in server.requests {
      request.respond(Response("late"))
      request.end(.reset)
    }
    #expect(server.endedConnectionCount == server.connectionCount)
  }
}

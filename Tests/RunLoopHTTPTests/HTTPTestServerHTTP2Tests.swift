// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTP
import RunLoopHTTPTesting
import RunLoopSockets
import RunLoopThreads
import TestSupport
import Testing

/// The test server's HTTP/2, and its handling of malformed input.
@Suite(.timeLimit(.minutes(20))) struct HTTPTestServerHTTP2Tests {
  typealias Response = HTTPTestServer.Response

  private static func server(
    _ script: [String: [Response]], _ change: (inout HTTPTestServer.Options) -> Void = { _ in }
  ) throws -> HTTPTestServer {
    var options = HTTPTestServer.Options()
    options.http2 = true
    change(&options)
    return try HTTPTestServer(options: options, script: script)
  }

  private func ends(_ server: HTTPTestServer, _ method: HTTP.Method = .post, _ paths: String...) async throws
    -> [String]
  {
    var found: [String] = []
    for path in paths {
      found.append(
        try await withClient {
          $0.version = .http2
        } _: { client in
          await end(client, HTTP.Request(method, server.url(path), body: method == .post ? .bytes(pattern(100)) : nil))
        })
    }
    return found
  }

  @Test("an HTTP/2 response may end early, and then its connection ends")
  func parts() async throws {
    let server = try Self.server([
      "/head": [Response("hello", part: .head, ending: .close)],
      "/body": [Response("hello", part: .body(2), ending: .halfClose)],
      "/reset": [Response("hello", part: .body(2), ending: .reset)],
      "/nothing": [Response(part: .nothing, ending: .reset)],
    ])
    let ends = try await ends(server, .post, "/head", "/body", "/reset", "/nothing")
    #expect(ends == ["connectionLost", "connectionLost", "connectionLost", "connectionLost"])
    await eventually { server.endedConnectionCount == 4 }
    #expect(server.requests.count == 4)
  }

  @Test("an HTTP/2 body arrives one byte at a time, after headers that HTTP/2 does not allow")
  func slow() async throws {
    var slow = Response("abc", status: 201, headers: ["Connection": "close", "X": "y"])
    slow.interval = .milliseconds(1)
    let server = try Self.server(["/": [slow]])
    #expect(try await ends(server, .get, "/") == ["201 abc"])
    #expect(try await ends(server, .head, "/") == ["201 "])
  }

  @Test("an HTTP/2 body that is too long ends the connection")
  func tooLarge() async throws {
    let server = try Self.server(["/": [Response("hello")]]) { $0.maximumBodySize = 99 }
    #expect(try await ends(server, .post, "/") == ["connectionLost"])
  }

  /// Returns the bytes of a connection with one request, some of which are changed at random.
  private static func input(_ seed: UInt64, isHTTP2: Bool) -> [UInt8] {
    let headers: [UInt8] = [0x83, 0x86, 0x84, 0x41, 1, 97]
    var bytes = Array("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".utf8)
    if isHTTP2 {
      bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9]
      bytes += [0, 0, UInt8(headers.count), 1, 4, 0, 0, 0, 1] + headers + [0, 0, 5, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5]
      bytes += [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]
    }
    var random = SplitMix64(seed: seed)
    for _ in 0..<1 + seed % 4 where !bytes.isEmpty {
      let place = Int(random.next() % UInt64(bytes.count))
      switch random.next() % 4 {
      case 0: bytes.remove(at: place)
      case 1: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
      case 2: bytes.removeLast(bytes.count - place - 1)
      default: bytes[place] = UInt8(truncatingIfNeeded: random.next())
      }
    }
    return bytes
  }

  @Test("the server responds to any input or closes the connection, and serves the next one", arguments: [false, true])
  func anything(_ isHTTP2: Bool) async throws {
    let server = try Self.server(["/": [Response("hello")]])
    let thread = try ResidentThread()
    for seed: UInt64 in 0..<500 {
      let client = try Socket(connectingTo: server.address)
      try thread.runLoop.add(client, forMode: .default)
      // The server may close the connection before everything has been sent.
      do {
        try await client.send(Self.input(seed, isHTTP2: isHTTP2))
        client.shutDown(.write)
        while try await client.receive(atMost: 65_536) != nil {}
      } catch is SocketError {}
      client.invalidate()
    }
    #expect(try await ends(server, .get, "/") == ["200 hello"])
  }
}

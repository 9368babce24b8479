// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The client's handling of responses that no well-behaved server sends.
@Suite struct HostileAnswerTests {
  /// Sends some bytes, ends the connection, and returns the outcome.
  private func end(after bytes: [UInt8]) async throws -> String {
    let server = try LyingServer { exchange in
      exchange.send(bytes)
      exchange.end()
    }
    defer { server.stop() }
    return try await withClient { await RunLoopHTTPTests.end($0, HTTP.Request(server.url())) }
  }

  private func end(after text: String) async throws -> String { try await end(after: Array(text.utf8)) }

  @Test(
    "headers that are truncated anywhere are a lost connection",
    arguments: [
      "", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nA: b\r\n",
    ])
  func halfHead(_ text: String) async throws { #expect(try await end(after: text) == "connectionLost") }

  @Test(
    "a truncated body is a lost connection",
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ])
  func halfBody(_ text: String) async throws { #expect(try await end(after: text) == "connectionLost") }

  @Test(
    "lengths that are contradictory, overflow or are not numbers are a bad response",
    arguments: [
      "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: -5", "Content-Length: +5",
      "Content-Length: 99999999999999999999", "Content-Length: 0x5", "Content-Length:",
      "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked",
      "Content-Length: 5\r\n 5", "Content-Length : 5", " Content-Length: 5", "Transfer-Encoding : chunked",
      "Transfer-Encoding\u{b}: chunked", "A: b\rc", "A: b\0c",
    ])
  func lengths(_ fields: String) async throws {
    #expect(try await end(after: "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello") == "badServerResponse")
  }

  @Test(
    "an invalid status line is a bad response",
    arguments: [
      "hello", "HTTP/1.1 abc OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/7.3 200 OK", "HTTP/1.1 099 Low",
      "HTTP/1.1 101 Switching Protocols", "HTTP/2 200 OK", "HTTP/2 200 ", "HTTP/2.0 200 OK", "HTTP/3 200 ",
    ])
  func statusLines(_ line: String) async throws {
    #expect(try await end(after: "\(line)\r\nContent-Length: 5\r\n\r\nhello") == "badServerResponse")
  }

  @Test(
    "malformed chunks are a bad response",
    arguments: [
      "zz\r\nhello\r\n", "fffffffffffffffffffff\r\nhello\r\n", "-5\r\nhello\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
    ])
  func chunks(_ text: String) async throws {
    #expect(try await end(after: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + text) == "badServerResponse")
  }

  @Test("malformed chunks are not retried, and truncated ones are", arguments: [true, false])
  func retriedChunks(_ isGarbage: Bool) async throws {
    let server = try LyingServer { exchange in
      exchange.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + (isGarbage ? "zz\r\n" : "5\r\nhel"))
      exchange.end()
    }
    defer { server.stop() }
    try await withClient {
      $0.retry.maximumCount = 2
      $0.retry.delay = .milliseconds(1)
    } _: { client in
      let end = await RunLoopHTTPTests.end(client, HTTP.Request(server.url()))
      #expect(end == (isGarbage ? "badServerResponse" : "connectionLost"))
    }
    #expect(server.requests.value.count == (isGarbage ? 1 : 3))
  }

  @Test("malformed data after many chunks is detected, and the bytes before it are delivered")
  func lateGarbage() async throws {
    let chunk = "4000\r\n" + String(repeating: "a", count: 0x4000) + "\r\n"
    let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 40)
    #expect(try await end(after: whole + "zz" + String(repeating: "x", count: 100_000)) == "badServerResponse")
    #expect(try await end(after: whole + "40") == "connectionLost")
    #expect(try await end(after: whole) == "connectionLost")
    #expect(try await end(after: whole + "0\r\n\r\n").count == 4 + 40 * 0x4000)
  }

  @Test("a reason may be missing, lengths may be repeated, and trailers are skipped")
  func oddities() async throws {
    #expect(try await end(after: "HTTP/1.1 200\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello") == "200 hello")
    let chunked = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"
    #expect(try await end(after: chunked.replacing("1.0", with: "1.1")) == "200 hello")
    #expect(try await end(after: "HTTP/1.0 200 OK\r\n\r\nuntil the end") == "200 until the end")
    let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    #expect(try await end(after: early) == "200 hi")
  }

  @Test("a header field in Latin-1 is read")
  func latin() async throws {
    let server = try LyingServer { exchange in
      exchange.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: caf".utf8) + [0xe9] + Array("\r\n\r\n".utf8))
    }
    try await withClient { client in
      let (_, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(response.headers["x"] == "café")
    }
  }

  @Test("headers, interim responses and trailers that never end are too large")
  func endless() async throws {
    let field = "X: " + String(repeating: "a", count: 1000) + "\r\n"
    let many = String(repeating: field, count: 300)
    #expect(try await end(after: "HTTP/1.1 200 OK\r\n" + many) == "tooLarge")
    #expect(try await end(after: String(repeating: "HTTP/1.1 100 Continue\r\n\(field)\r\n", count: 300)) == "tooLarge")
    let trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + many
    #expect(try await end(after: trailer) == "tooLarge")
    let long = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: "
    #expect(try await end(after: long + String(repeating: "a", count: 400_000) + "\r\n\r\n") == "tooLarge")
    #expect(try await end(after: "HTTP/1.1 200 OK\r\nX: " + String(repeating: "a", count: 300_000)) == "tooLarge")
  }

  @Test("a chunk extension that never ends is a bad response")
  func endlessChunkLine() async throws {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;"
    let server = try FloodServer(Array("extension".utf8), after: Array(head.utf8))
    try await withClient { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url)) == "badServerResponse")
    }
    await eventually { server.ended.value == 1 }
  }

  @Test("a body larger than allowed ends the request, whether or not its length was announced")
  func largeBodies() async throws {
    for framing in ["Content-Length: 100", "Connection: close"] {
      let server = try LyingServer { exchange in
        exchange.send("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n" + String(repeating: "a", count: 100))
        exchange.end()
      }
      try await withClient {
        $0.maximumBodySize = 99
      } _: { client in
        #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "tooLarge")
      }
    }
  }

  @Test("bytes after the end of a response are not taken for the next response")
  func strayBytes() async throws {
    let server = try LyingServer { exchange in
      // They arrive together: bytes that arrive when the next request is sent cannot be distinguished from its
      // response.
      let stray = exchange.path == "/stray" ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil" : ""
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + stray)
    }
    try await withClient { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url("/stray"))) == "200 hello")
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url("/next"))) == "200 hello")
    }
  }

  @Test("a kept connection is discarded when closed, and for HTTP/1 also if bytes arrive", arguments: [true, false])
  func spoiledConnections(_ speaksHTTP2: Bool) throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { close(ends[0]) }
    let source = RunLoop.DescriptorSource(descriptor: ends[0], events: []) { _, _ in }
    let watch = SocketWatch(source, isOfConnection: true)
    #expect(!watch.isSpoiled)
    if speaksHTTP2 { watch.speaksHTTP2 = true } else { watch.speaksHTTP1 = true }
    #expect(!watch.isSpoiled)
    #expect(write(ends[1], "x", 1) == 1)
    #expect(watch.isSpoiled == !speaksHTTP2)
    var byte: UInt8 = 0
    #expect(read(ends[0], &byte, 1) == 1)
    #expect(!watch.isSpoiled)
    close(ends[1])
    #expect(watch.isSpoiled)
  }

  @Test("a kept connection that was reset is not used, so a request that must not be resent does not fail")
  func resetConnections() async throws {
    let first = Box<LyingServer.Exchange?>(nil)
    let server = try LyingServer { exchange in
      exchange.answer(exchange.line)
      first.update { $0 = $0 ?? exchange }
    }
    try await withClient { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url("/one"))) == "200 GET /one")
      let descriptor = try #require(server.clientDescriptors.first)
      first.value?.reset()
      await eventually {
        var question = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&question, 1, 0) > 0 && question.revents & Int16(POLLHUP) != 0
      }
      let post = HTTP.Request(.post, server.url("/two"), body: .bytes([1, 2, 3]))
      #expect(await RunLoopHTTPTests.end(client, post) == "200 POST /two")
      #expect(server.requests.value == ["GET /one", "POST /two"])
    }
  }

  @Test("a redirect's response body is not awaited, however slowly it arrives")
  func slowRedirects() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/from" {
        exchange.send("HTTP/1.1 302 Found\r\nLocation: /to\r\nContent-Length: 1000\r\n\r\nx")
      } else {
        exchange.answer("there")
      }
    }
    try await withClient { client in
      // No timeout would end it.
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url("/from"))) == "200 there")
    }
  }

  @Test("a request whose Expect header the server rejects is resent without it", arguments: [HTTP.Method.post, .put])
  func expectation(_ method: HTTP.Method) async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Expect") == nil {
        exchange.answer("\(exchange.line.prefix(4)) \(exchange.body.count)")
      } else {
        exchange.answer("", status: "417 No")
      }
    }
    try await withClient { client in
      let request = HTTP.Request(method, server.url(), headers: ["Expect": "100-continue"], body: .bytes(pattern(1000)))
      #expect(
        await RunLoopHTTPTests.end(client, request) == "200 \(method == .put ? "PUT " : "POST") 1000")
    }
    #expect(server.requests.value.count == 2)
  }

  @Test("a partial response whose end overflows is rejected without a trap")
  func endlessPart() async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Range") == nil {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1\"\r\n\r\nhello")
      } else {
        let range = "bytes 5-9223372036854775807/*"
        exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Range: \(range)\r\n\r\nworld")
      }
      exchange.end()
    }
    try await withClient {
      $0.retry.maximumCount = 1
      $0.retry.delay = .milliseconds(1)
    } _: { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "resumeMismatch")
    }
    #expect(server.requests.value.count == 2)
  }

  @Test("an empty encoded body is complete only if its length says so, not at the end of the connection")
  func emptyCoded() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
    #expect(try await end(after: head + "\r\n") == "cannotDecode")
    #expect(try await end(after: head + "Content-Length: 0\r\n\r\n") == "200 ")
    #expect(try await end(after: head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == "200 ")
  }

  @Test("a partial response that was not requested is a bad response")
  func unaskedPart() async throws {
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello"
    #expect(try await end(after: part) == "badServerResponse")
  }
}

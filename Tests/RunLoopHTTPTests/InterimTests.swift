// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Interim responses and trailers.
@Suite struct InterimTests {
  /// The outcome of a request, its interim responses, and the fields of its trailers.
  private static func end(
    _ change: (inout HTTP.Configuration) -> Void = { _ in }, path: String = "/",
    _ respond: @escaping @Sendable (LyingServer.Exchange) -> Void
  ) async throws -> String {
    let server = try LyingServer(respond)
    let log = Log()
    var request = HTTP.Request(server.url(path))
    request.onInterim = { log.write("\($0.status.code) \($0.headers["Link"] ?? "-")") }
    return try await withClient(change) { client in
      do {
        let (body, response) = try await client.data(for: request)
        log.write("\(response.status.code) \(body.text ?? "")")
        for field in response.trailers.fields { log.write("\(field.name)=\(field.value)") }
        for oddity in response.oddities { log.write("\(oddity)") }
      } catch let error as HTTP.Error {
        log.write(error.code.name)
      }
      return log.text
    }
  }

  private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  private static let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

  @Test("interim responses are reported in order, and are not the response")
  func interim() async throws {
    let both = "HTTP/1.1 100 Continue\r\n\r\n" + Self.hint
    #expect(try await Self.end { $0.send(both + Self.answer) } == "100 - 103 </a> 200 ok")
    // A redirect has its own interim response.
    let end = try await Self.end(path: "/first") { exchange in
      exchange.send(Self.hint)
      if exchange.path == "/first" {
        exchange.answer("", status: "302 Found", "Location: /next")
      } else {
        exchange.answer("ok")
      }
    }
    #expect(end == "103 </a> 103 </a> 200 ok")
  }

  @Test("an interim response that never ends, is truncated or changes the protocol is an error")
  func hostile() async throws {
    let many = String(repeating: Self.hint, count: 10_000)
    let flood = try await Self.end({ $0.maximumHeaderSize = 4000 }) { $0.send(many) }
    #expect(flood.hasSuffix("tooLarge") && flood.count < 4000)
    #expect(
      try await Self.end { exchange in
        exchange.send(Self.hint)
        exchange.end()
      } == "103 </a> connectionLost")
    #expect(try await Self.end { $0.send("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n") } == "badServerResponse")
    #expect(try await Self.end { $0.send("HTTP/1.1 103 Hints\r\nA: \0\r\n\r\n" + Self.answer) } == "badServerResponse")
  }

  private static func chunked(_ trailer: String) -> String {
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: head\r\n\r\n2\r\nok\r\n0\r\n\(trailer)\r\n"
  }

  @Test("the fields after a body are the trailers, and do not change the headers")
  func trailers() async throws {
    #expect(try await Self.end { $0.send(Self.chunked("Digest: a\r\nx:  tail \r\n")) } == "200 ok Digest=a x=tail")
    #expect(try await Self.end { $0.send(Self.chunked("")) } == "200 ok")
    #expect(try await Self.end { $0.send(Self.answer) } == "200 ok")
    // Length, cookie and location fields have no effect in a trailer.
    let server = try LyingServer {
      $0.send(Self.chunked("Content-Length: 9\r\nSet-Cookie: a=b\r\nLocation: /\r\nContent-Encoding: gzip\r\n"))
    }
    try await withClient {
      $0.storesCookies = true
    } _: { client in
      let (body, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(body.text == "ok" && response.headers["Content-Length"] == nil && client.cookies.isEmpty)
      #expect(response.trailers["set-cookie"] == "a=b" && response.trailers.fields.count == 4)
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "200 ok")
    }
  }

  @Test("lines of a trailer that are not fields are skipped, and too many of them are an error")
  func brokenTrailers() async throws {
    let line = Self.chunked("no field: x\r\nA: b\r\n")
    let end = try await Self.end { $0.send(line) }
    #expect(end == #"200 ok A=b malformedLine("no field: x")"#)
    #expect(try await Self.end({ $0.strict = true }) { $0.send(line) } == "badServerResponse")
    let many = Self.chunked(String(repeating: "A: b\r\n", count: 1000))
    #expect(try await Self.end({ $0.maximumHeaderSize = 4000 }) { $0.send(many) } == "tooLarge")
  }

  @Test("a stream's trailers are available after its body, and HTTP/2 behaves the same")
  func streams() async throws {
    let server = try LyingServer { $0.send(Self.chunked("A: b\r\n")) }
    // The field "a: b" as a literal, after the body.
    let frames = try FrameServer("") { stream in
      FrameServer.frame(1, flags: 4, of: stream, [0x88]) + FrameServer.frame(0, of: stream, [111, 107])
        + FrameServer.frame(1, flags: 5, of: stream, [0, 1, 97, 1, 98])
    }
    for (url, version) in [(server.url(), HTTP.Configuration.Version.http1), (frames.url, .http2)] {
      try await withClient {
        $0.version = version
      } _: { client in
        let (body, head) = try await client.stream(for: HTTP.Request(url))
        #expect(head.trailers.fields.isEmpty)
        var bytes: [UInt8] = []
        for try await chunk in body { bytes += chunk }
        #expect(bytes == [111, 107])
        #expect(body.finalResponse?.trailers["a"] == "b")
      }
    }
  }
}

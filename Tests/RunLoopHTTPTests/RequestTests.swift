// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Ordinary requests to well-behaved servers.
@Suite struct RequestTests {
  @Test("bodies of all kinds and lengths arrive unchanged", arguments: [0, 1, 1000, 300_000])
  func uploads(_ count: Int) async throws {
    let bytes = pattern(count)
    let server = try LyingServer { $0.answer($0.body) }
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { RunLoopTestPath.remove(path) }
    RunLoopTestPath.write(bytes, to: path)
    let chunks = stride(from: 0, to: count, by: 7000).map { Array(bytes[$0..<min($0 + 7000, count)]) }
    @Sendable func stream() -> AsyncStream<[UInt8]> {
      AsyncStream { continuation in
        for chunk in chunks { continuation.yield(chunk) }
        continuation.finish()
      }
    }
    try await withClient { client in
      for body in [
        HTTP.Content.bytes(bytes), .file(path), .stream(length: Int64(count), stream), .stream(stream),
      ] {
        for method in [HTTP.Method.post, .put] {
          let (answer, response) = try await client.data(for: HTTP.Request(method, server.url(), body: body))
          #expect(response.status == 200)
          #expect(answer.bytes == bytes)
        }
      }
    }
  }

  @Test("a sequence that throws, or has fewer or more bytes than announced, ends the request")
  func wrongStreams() async throws {
    struct Failure: Error {}
    let server = try LyingServer { $0.answer("unexpected") }
    let bodies: [HTTP.Content] = [
      .stream(length: 10) {
        AsyncStream {
          $0.yield([1, 2, 3]); $0.finish()
        }
      },
      .stream(length: 2) {
        AsyncStream {
          $0.yield([1, 2, 3]); $0.finish()
        }
      },
      .stream {
        AsyncThrowingStream {
          $0.yield([1]); $0.finish(throwing: Failure())
        }
      },
      .file("/nonexistent/file"),
    ]
    try await withClient { client in
      for body in bodies {
        #expect(await end(client, HTTP.Request(.post, server.url(), body: body)) == "invalidRequest")
      }
    }
    #expect(server.requests.value == [])
  }

  @Test("an invalid request is rejected before anything is opened")
  func invalidRequests() async throws {
    try await withClient { client in
      #expect(await end(client, HTTP.Request("ftp://example.org/")) == "unsupportedURL")
      #expect(await end(client, HTTP.Request(HTTP.Method("GE T"), "http://example.org/")) == "invalidRequest")
      #expect(await end(client, HTTP.Request("http://example.org/", headers: ["A": "b\r\nC: d"])) == "invalidRequest")
      #expect(await end(client, HTTP.Request("http://example.org/", headers: ["A b": "c"])) == "invalidRequest")
      #expect(
        await end(client, HTTP.Request("http://example.org/", headers: ["Content-Length": "5"])) == "invalidRequest")
      #expect(
        await end(client, HTTP.Request("http://example.org/", headers: ["Transfer-Encoding": "chunked"]))
          == "invalidRequest")
    }
  }

  @Test("one connection serves consecutive requests, and a limit applies to concurrent ones")
  func connections() async throws {
    let server = try LyingServer { $0.answer("ok") }
    try await withClient {
      $0.connectionsPerHost = 2
    } _: { client in
      #expect(
        await ends(client, HTTP.Request(server.url()), times: 5) == [String](repeating: "200 ok", count: 5))
      #expect(server.accepted.value == 1)
    }
    await eventually { server.ended.value == 1 }
    try await withClient {
      $0.connectionsPerHost = 2
    } _: { client in
      let operations = (0..<20).map { _ in client.operation(HTTP.Request(server.url()), on: .main) }
      for operation in operations { operation.start() }
      for operation in operations {
        let (_, response) = try await operation.value()
        #expect(response.status == 200)
      }
      #expect(server.accepted.value <= 3)
    }
    await eventually { server.ended.value == server.accepted.value }
  }

  @Test("the bytes of a Location go back to the server as they are, and an empty one leads nowhere")
  func locations() async throws {
    // Latin-1, GBK, and UTF-8.
    let places: [String: [UInt8]] = [
      "/latin": Array("/q".utf8) + [0xe9] + Array("?x=".utf8) + [0xfc], "/gbk": [47, 0xc4, 0xe3],
      "/utf8": Array("/é".utf8), "/nowhere": [],
    ]
    let server = try LyingServer { exchange in
      guard let place = places[exchange.path] else { return exchange.answer(exchange.line) }
      let head = "HTTP/1.1 302 Found\r\nContent-Length: 5\r\nLocation: "
      exchange.send(Array(head.utf8) + place + Array("\r\n\r\nmoved".utf8))
    }
    try await withClient { client in
      #expect(await end(client, HTTP.Request(server.url("/latin"))) == "200 GET /q%E9?x=%FC")
      #expect(await end(client, HTTP.Request(server.url("/gbk"))) == "200 GET /%C4%E3")
      #expect(await end(client, HTTP.Request(server.url("/utf8"))) == "200 GET /%C3%A9")
      #expect(await end(client, HTTP.Request(server.url("/nowhere"))) == "302 moved")
    }
  }

  @Test("the body of a response with the transfer coding identity arrives")
  func identity() async throws {
    let server = try LyingServer {
      $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello")
      $0.end()
    }
    try await withClient { client in #expect(await end(client, HTTP.Request(server.url())) == "200 hello") }
  }

  @Test("redirects are followed up to a limit, and secrets are not sent to another host")
  func redirects() async throws {
    let other = try LyingServer { $0.answer("\($0.field("Authorization") ?? "none")") }
    let elsewhere = other.url("/", host: "localhost")
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/circle": exchange.answer("", status: "302 Found", "Location: /circle")
      case "/file": exchange.answer("", status: "302 Found", "Location: file:///etc/passwd")
      case "/other": exchange.answer("", status: "302 Found", "Location: \(elsewhere)")
      case "/keep": exchange.answer("", status: "307 Again", "Location: /body")
      case "/here": exchange.answer("moved", status: "302 Found", "Location: /body")
      default: exchange.answer("\(exchange.line) \(exchange.body.count) \(exchange.field("Authorization") ?? "none")")
      }
    }
    try await withClient {
      $0.maximumRedirects = 5
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url("/circle"))) == "tooManyRedirects")
      #expect(server.requests.value.count == 6)
      #expect(await end(client, HTTP.Request(server.url("/file"))) == "redirectRejected")
      let secret = HTTP.Headers([.init("Authorization", "secret")])
      #expect(await end(client, HTTP.Request(server.url("/other"), headers: secret)) == "200 none")
      #expect(await end(client, HTTP.Request(server.url("/here"), headers: secret)) == "200 GET /body 0 secret")
      let post = HTTP.Request(.post, server.url("/keep"), body: .text("hello"))
      #expect(await end(client, post) == "200 POST /body 5 none")
      let (_, response) = try await client.data(for: HTTP.Request(server.url("/here")))
      #expect(response.redirectCount == 1)
      #expect(response.url == server.url("/body"))
    }
    try await withClient {
      $0.maximumRedirects = 0
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url("/here"))) == "302 moved")
    }
  }

  @Test("a request is retried after some statuses and lost connections, if enabled and the request is idempotent")
  func retries() async throws {
    let count = Counter()
    let server = try LyingServer { exchange in
      let isLast = count.add() % 3 == 0
      if isLast {
        exchange.answer("done")
      } else if exchange.path == "/busy" {
        exchange.answer("busy", status: "503 Busy", "Retry-After: 0")
      } else {
        exchange.close()
      }
    }
    try await withClient {
      $0.retry = HTTP.Retry(maximumCount: 2)
      $0.retry.delay = .microseconds(1)
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url("/busy"))) == "200 done")
      #expect(await end(client, HTTP.Request(.put, server.url("/close"), body: .text("x"))) == "200 done")
      #expect(count.value == 6)
      #expect(await end(client, HTTP.Request(.post, server.url("/busy"))) == "503 busy")
      #expect(await end(client, HTTP.Request(.post, server.url("/close"))) == "connectionLost")
      #expect(count.value == 8)
    }
    try await withClient { client in
      _ = count.add()
      #expect(await end(client, HTTP.Request(server.url("/busy"))) == "503 busy")
    }
  }

  @Test(
    "a request that must not be repeated is not, when its kept connection ends",
    arguments: [HTTP.Method.post, .patch])
  func closedUnder(_ method: HTTP.Method) async throws {
    let server = try LyingServer { exchange in
      if exchange.number == 0 { exchange.answer("first") } else { exchange.close() }
    }
    try await withClient { client in
      for body in [HTTP.Content.text("body"), .text("")] {
        let requests = [HTTP.Request(server.url()), HTTP.Request(method, server.url("/once"), body: body)]
        let found = await ends(client, requests)
        #expect(found == ["200 first", "connectionLost"])
      }
      #expect(server.requests.value.filter { $0 == "\(method) /once" }.count == 2)
    }
  }

  @Test("credentials are sent once, when the server asks for them")
  func credentials() async throws {
    let basic = "Basic " + base64(Array("user:pass".utf8))
    let server = try LyingServer { exchange in
      if exchange.field("Authorization") == basic {
        exchange.answer("in")
      } else {
        exchange.answer("who?", status: "401 Who", "WWW-Authenticate: Basic realm=\"r\"")
      }
    }
    try await withClient { client in #expect(await end(client, HTTP.Request(server.url())) == "401 who?") }
    try await withClient {
      $0.credential = HTTP.Credential(user: "user", password: "pass")
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "200 in")
    }
    try await withClient { client in
      let url = server.url().replacing("http://", with: "http://user:pass@")
      #expect(await end(client, HTTP.Request(url)) == "200 in")
    }
    let before = server.requests.value.count
    try await withClient {
      $0.credential = HTTP.Credential(user: "user", password: "wrong")
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "authenticationFailed")
    }
    #expect(server.requests.value.count == before + 2)
  }

  @Test("cookies are kept and sent only if the configuration enables them")
  func cookies() async throws {
    let server = try LyingServer { $0.answer($0.field("Cookie") ?? "none", "Set-Cookie: a=b") }
    try await withClient { client in
      for _ in 0..<2 { #expect(await end(client, HTTP.Request(server.url())) == "200 none") }
    }
    try await withClient {
      $0.storesCookies = true
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "200 none")
      #expect(await end(client, HTTP.Request(server.url())) == "200 a=b")
      #expect(client.cookies.map(\.name) == ["a"])
      client.removeCookies()
      #expect(await end(client, HTTP.Request(server.url())) == "200 none")
    }
  }

  @Test("a proxy serves every host, with its credentials and without a look-up of the host")
  func proxies() async throws {
    let secret = "Basic " + base64(Array("u:p".utf8))
    let proxy = try LyingServer { exchange in
      if exchange.field("Proxy-Authorization") == secret {
        exchange.answer("proxied \(exchange.path) \(exchange.body.count)")
      } else {
        exchange.answer("", status: "407 Who", "Proxy-Authenticate: Basic realm=\"r\"")
      }
    }
    try await withClient {
      $0.proxy = .url(proxy.url().replacing("http://", with: "http://u:p@"))
    } _: { client in
      let url = "http://no.such.host.invalid/x"
      #expect(await end(client, HTTP.Request(url)) == "200 proxied \(url) 0")
      let post = HTTP.Request(.post, url, body: .text("body"))
      #expect(await end(client, post) == "200 proxied \(url) 4")
    }
    try await withClient {
      $0.proxy = .url(proxy.url().replacing("http://", with: "http://u:wrong@"))
    } _: { client in
      #expect(await end(client, HTTP.Request("http://no.such.host.invalid/")) == "proxyFailed")
    }
  }

  @Test("an interceptor can change a request, respond to it or end it, without libcurl")
  func interceptors() async throws {
    let seen = Box<[String]>([])
    try await withClient {
      $0.interceptors = [
        .init { request in
          seen.update { $0.append(request.url) }
          var request = request
          request.url += "2"
          return .proceed(request)
        },
        .init { request in
          request.url.hasSuffix("fail2")
            ? .fail(.timedOut, "a test") : .respond(HTTP.Response(status: 203), HTTP.Body(request.url))
        },
      ]
    } _: { client in
      #expect(await end(client, HTTP.Request("test:a")) == "203 test:a2")
      #expect(await end(client, HTTP.Request("test:fail")) == "timedOut")
      #expect(seen.value == ["test:a", "test:fail"])
    }
  }

  @Test("an example of a retry loop compiles and ends")
  func retryLoop() async throws {
    let count = Counter()
    let server = try LyingServer { exchange in if count.add() < 3 { exchange.close() } else { exchange.answer("ok") } }
    try await withClient { client in
      while true {
        do {
          let (body, _) = try await client.data(for: HTTP.Request(server.url()))
          #expect(body.text == "ok")
          break
        } catch let error as HTTP.Error where error.code == .connectionLost {
          continue
        }
      }
    }
    #expect(count.value == 3)
  }

  @Test("the texts of errors contain no secrets")
  func errorTexts() async throws {
    let server = try LyingServer { $0.close() }
    try await withClient { client in
      let url = server.url("/path?query=hidden#fragment").replacing("http://", with: "http://hiddenuser:hiddenpass@")
      do {
        _ = try await client.data(for: HTTP.Request(url))
        Issue.record("there is no answer")
      } catch let error as HTTP.Error {
        #expect(!"\(error) \(error.url)".contains("hidden"))
        #expect(error.url == server.url("/path"))
      }
    }
  }

  @Test("a library that is missing, too old or without a function is a typed error")
  func libraries() {
    func detail(_ body: () throws(HTTP.Error) -> Void) -> String {
      do {
        try body()
        return ""
      } catch {
        return "\(error.code): \(error.detail)"
      }
    }
    #expect(
      detail { () throws(HTTP.Error) in try CurlLibrary.tryOpen("libnone.so") }.hasPrefix(
        "noLibrary: libnone.so cannot"))
    #expect(
      detail { () throws(HTTP.Error) in try CurlLibrary.tryOpen("libnone.so") }.contains("libcurl4, or libcurl4t64"))
    #expect(
      detail { () throws(HTTP.Error) in try CurlLibrary.tryOpen("libz.so.1") }
        == "noLibrary: libz.so.1 has no curl_global_init")
    #expect(
      detail { () throws(HTTP.Error) in try CurlLibrary.tryOpen("libcurl.so.4", oldest: .max) }.contains(
        "is the oldest"))
    #expect(detail { () throws(HTTP.Error) in try CurlLibrary.tryOpen("libcurl.so.4") } == "")
  }
}

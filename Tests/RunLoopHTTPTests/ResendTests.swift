// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopHTTPTesting
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Requests that are resent, and those that are not.
@Suite(.timeLimit(.minutes(20))) struct ResendTests {
  typealias Response = HTTPTestServer.Response

  /// Starts an HTTP/2 server that sends responses in order, the last one repeatedly.
  private static func server(_ responses: [Response]) throws -> HTTPTestServer {
    var options = HTTPTestServer.Options()
    options.http2 = true
    return try HTTPTestServer(options: options, script: ["/": responses])
  }

  /// The outcome of a request, and why it was resent.
  private static func end(_ client: HTTP.Client, _ request: HTTP.Request) async -> String {
    do {
      let (body, response) = try await client.data(for: request)
      return (["\(response.status.code)", body.text ?? ""] + response.resends.map { "\($0)" }).joined(separator: " ")
    } catch let error as HTTP.Error {
      return error.code.name
    } catch {
      return "\(error)"
    }
  }

  /// Sends a request to an HTTP/2 server that rejects the first ones.
  ///
  /// Returns the outcome, and the number of requests that the server has seen.
  private static func end(
    rejecting count: Int, by rejection: Response = Response(ending: .reject), _ method: HTTP.Method,
    mayResend: Bool = true
  ) async throws -> (end: String, count: Int) {
    let server = try server([Response](repeating: rejection, count: count) + [Response("hello")])
    var request = HTTP.Request(method, server.url(), body: method == .get ? nil : .bytes(pattern(1000)))
    request.allowsResending = mayResend
    let end = try await withClient {
      $0.version = .http2
    } _: { client in
      await Self.end(client, request)
    }
    return (end, server.requests.count)
  }

  @Test(
    "a request that the server has rejected unprocessed is resent, whatever its method",
    arguments: [HTTP.Method.get, .post, .patch])
  func unprocessed(_ method: HTTP.Method) async throws {
    // The last count is more than the number of times that libcurl resends a request itself.
    for count in [0, 1, 12] {
      let (end, seen) = try await Self.end(rejecting: count, method)
      #expect(end == "200 hello" + String(repeating: " unprocessed", count: count))
      #expect(seen == count + 1)
    }
  }

  @Test("a server that sends GOAWAY before a request loses no request that may be resent")
  func goingAway() async throws {
    let (end, seen) = try await Self.end(rejecting: 1, by: Response(part: .nothing, ending: .goAway), .get)
    // libcurl before 8.0 does not report that the only stream was rejected.
    #expect(["200 hello connectionEnded", "200 hello unprocessed"].contains(end))
    #expect(seen == 2)
  }

  @Test("a request that must not be resent is not", arguments: [HTTP.Method.get, .post])
  func forbidden(_ method: HTTP.Method) async throws {
    let (end, seen) = try await Self.end(rejecting: 1, method, mayResend: false)
    #expect(end == "connectionLost")
    #expect(seen == 1)
  }

  @Test("a request that the server rejects every time fails eventually")
  func limit() async throws {
    let (end, seen) = try await Self.end(rejecting: 100, .post)
    #expect(end == "connectionLost")
    #expect(seen > Transfer.mostResends)
  }

  @Test("an HTTP/2 connection that ends without GOAWAY permits no resending", arguments: [HTTP.Method.post, .patch])
  func cut(_ method: HTTP.Method) async throws {
    let server = try Self.server([Response(part: .nothing, ending: .close)])
    try await withClient {
      $0.version = .http2
    } _: { client in
      let end = await Self.end(client, HTTP.Request(method, server.url(), body: .text("x")))
      #expect(end == "connectionLost")
    }
    #expect(server.requests.count == 1)
  }

  private static let stream = HTTP.Content.stream {
    AsyncStream<[UInt8]> {
      $0.yield(Array("x".utf8))
      $0.finish()
    }
  }

  @Test("a sequence is sent again where other bodies are", arguments: [false, true])
  func sequences(isHTTP2: Bool) async throws {
    var options = HTTPTestServer.Options()
    options.http2 = isHTTP2
    let ending: Response.Ending = isHTTP2 ? .reject : .reset
    let script = ["/": [Response(part: .nothing, ending: ending), Response("ok")], "/warm": [Response("w")]]
    let server = try HTTPTestServer(options: options, script: script)
    try await withClient {
      if isHTTP2 { $0.version = .http2 }
    } _: { client in
      #expect(await Self.end(client, HTTP.Request(server.url("/warm"))) == "200 w")
      let outcome = await Self.end(client, HTTP.Request(.put, server.url(), body: Self.stream))
      #expect(outcome == "200 ok \(isHTTP2 ? "unprocessed" : "connectionEnded")")
    }
  }

  @Test("a misdirected request is resent once on a new connection, whatever its method")
  func misdirected() async throws {
    let (seen, streamed) = (Counter(), Counter())
    let server = try HTTPTestServer { request in
      let isRejected =
        request.path == "/never" || request.path == "/second" && seen.add() == 1
        || request.path == "/stream" && streamed.add() == 1
      return Response("\(request.number)", status: isRejected ? 421 : 200)
    }
    try await withClient { client in
      #expect(await Self.end(client, HTTP.Request(server.url())) == "200 0")
      #expect(
        await Self.end(client, HTTP.Request(.post, server.url("/second"), body: .text("x"))) == "200 0 unprocessed")
      #expect(
        await Self.end(client, HTTP.Request(.post, server.url("/stream"), body: Self.stream)) == "200 0 unprocessed")
      #expect(await Self.end(client, HTTP.Request(.post, server.url("/never"))).hasSuffix(" unprocessed"))
      var once = HTTP.Request(server.url("/never"))
      once.allowsResending = false
      #expect(await Self.end(client, once).hasPrefix("421 "))
    }
    #expect(server.requests.filter { ["POST /second", "POST /never"].contains($0.line) }.count == 4)
    #expect(server.requests.filter { $0.line == "GET /never" }.count == 1)
  }

  @Test("a 408 on a kept connection may be about its idle time, and is subject to the retry policy")
  func timeout() async throws {
    let server = try HTTPTestServer { request in
      let isLate = request.number > 0 || request.path == "/always"
      return isLate ? Response("late", status: 408, ending: .goAway) : Response("hello")
    }
    for retries in [0, 1] {
      try await withClient {
        $0.retry = HTTP.Retry(maximumCount: retries)
        $0.retry.delay = .milliseconds(1)
      } _: { client in
        #expect(await Self.end(client, HTTP.Request(server.url())) == "200 hello")
        #expect(await Self.end(client, HTTP.Request(server.url())) == (retries == 0 ? "408 late" : "200 hello retry"))
        #expect(await Self.end(client, HTTP.Request(.post, server.url("/always"))) == "408 late")
      }
    }
  }

  /// Runs an action on the loader's thread when the second request is about to be sent on a kept connection.
  private final class SendingReceiver: Receiver, Sendable {
    let outcome = TaskOutcome<HTTP.Response>()
    private let act: @Sendable () -> Void
    private let hasActed = Counter()

    init(_ act: @escaping @Sendable () -> Void) { self.act = act }

    var canRestart: Bool { true }
    var defaultLimit: Int64? { nil }
    func begin(_ response: HTTP.Response, at offset: Int64) {}
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
    func finish(_ result: Result<HTTP.Response, HTTP.Error>) { outcome.finish(result) }
    func note(_ state: HTTP.Operation.State, _ progress: HTTP.Progress) {
      if state == .sending, hasActed.add() == 1 { act() }
    }

    var end: String {
      get async {
        do {
          let response = try await outcome.value()
          return (["\(response.status.code)"] + response.resends.map { "\($0)" }).joined(separator: " ")
        } catch {
          return (error as? HTTP.Error)?.code.name ?? "\(error)"
        }
      }
    }
  }

  enum End: CaseIterable, Sendable {
    case end, reset, endAfterReading
  }

  @Test("a POST is resent if the server closed a kept connection before receiving it", arguments: End.allCases)
  func endBeforeRequest(_ end: End) async throws {
    let first = Box<LyingServer.Exchange?>(nil)
    let server = try LyingServer { exchange in
      if exchange.line == "GET /" { first.value = exchange }
      if end == .endAfterReading, exchange.number > 0 { return exchange.close() }
      exchange.answer("\(exchange.body.count)")
    }
    try await withClient { client in
      #expect(await Self.end(client, HTTP.Request(server.url())) == "200 0")
      let request = HTTP.Request(.post, server.url(), body: .bytes(pattern(1000)))
      let receiver = SendingReceiver {
        guard let exchange = first.value, let descriptor = server.clientDescriptors.first else { return }
        switch end {
        case .end: exchange.close()
        case .reset: exchange.reset()
        case .endAfterReading: return
        }
        // POLLRDHUP: the end of the stream has arrived.
        var question = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        _ = poll(&question, 1, -1)
      }
      #expect(client.core.begin(Transfer(client.core, request, receiver)) == nil)
      #expect(await receiver.end == (end == .endAfterReading ? "connectionLost" : "200 unprocessed"))
    }
    #expect(server.requests.value == ["GET /", "POST /"])
  }

  @Test("a POST is not resent if a kept connection is reset under it, although nothing of it was read")
  func resetUnderRequest() async throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        #expect(bind(listener, $0, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, $0, &length) == 0)
      }
    }
    let url = "http://127.0.0.1:\(UInt16(bigEndian: name.sin_port))/"
    async let accepted: Void = elsewhere {
      let connection = accept(listener, nil, nil)
      var bytes = [UInt8](repeating: 0, count: 4096)
      _ = read(connection, &bytes, bytes.count)
      let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".utf8)
      _ = write(connection, answer, answer.count)
      // The server has received the next request, and closes without reading it.
      var question = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
      _ = poll(&question, 1, -1)
      close(connection)
    }
    try await withClient { client in
      #expect(await Self.end(client, HTTP.Request(url)) == "200 hi")
      #expect(await Self.end(client, HTTP.Request(.post, url, body: .text("x"))) == "connectionLost")
    }
    _ = await accepted
  }

  @Test(
    "a POST over TLS is not resent if a kept connection is reset after it was read",
    .enabled(if: TLSFiles.canBeMade))
  func securedReset() async throws {
    let identity = TLSIdentity(certificateFile: TLSFiles.path("server.pem"), keyFile: TLSFiles.path("server.key"))
    let server = try LyingServer(tls: TLSServerConfiguration(identity: identity)) { exchange in
      if exchange.line == "POST /" { return exchange.reset() }
      exchange.answer("hi")
    }
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
    } _: { client in
      for _ in 0..<20 {
        #expect(await Self.end(client, HTTP.Request(server.url())) == "200 hi")
        #expect(await Self.end(client, HTTP.Request(.post, server.url(), body: .text("x"))) == "connectionLost")
      }
    }
    #expect(server.requests.value.count { $0 == "POST /" } == 20)
  }

  @Test("a response reports why its request was resent")
  func reasons() async throws {
    let server = try HTTPTestServer { request in
      switch request.path {
      case "/from": Response(status: 302, headers: ["Location": "/to"])
      case "/secret" where request.header("Authorization") == nil:
        Response(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
      case "/kept" where request.number > 0: Response(part: .nothing, ending: .close)
      default: Response("hello")
      }
    }
    try await withClient {
      $0.credential = HTTP.Credential(user: "user", password: "secret")
    } _: { client in
      #expect(await Self.end(client, HTTP.Request(server.url())) == "200 hello")
      #expect(await Self.end(client, HTTP.Request(server.url("/from"))) == "200 hello redirect")
      #expect(await Self.end(client, HTTP.Request(server.url("/secret"))) == "200 hello challenge")
      #expect(await Self.end(client, HTTP.Request(server.url("/kept"))) == "200 hello connectionEnded")
    }
  }
}

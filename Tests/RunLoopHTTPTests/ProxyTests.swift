// SPDX-License-Identifier: Apache-2.0

import RunLoopHTTP
import TestSupport
import Testing

/// Requests through proxies that require authentication or misbehave.
@Suite(.timeLimit(.minutes(20))) struct ProxyTests {
  private func end(
    through proxy: LyingServer, _ request: HTTP.Request, user: String = "",
    _ change: (inout HTTP.Configuration) -> Void = { _ in }
  ) async throws -> String {
    try await withClient {
      $0.proxy = .url(proxy.url().replacing("http://", with: "http://\(user)"))
      change(&$0)
    } _: { client in
      await RunLoopHTTPTests.end(client, request)
    }
  }

  private static func chunks() -> AsyncStream<[UInt8]> {
    AsyncStream { continuation in
      for _ in 0..<10 { continuation.yield(pattern(100)) }
      continuation.finish()
    }
  }

  @Test(
    "a body that cannot be read twice passes a proxy that requires credentials, by either method",
    arguments: ["Basic realm=\"r\"", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""], [nil, Int64(1000)])
  func streams(_ challenge: String, _ length: Int64?) async throws {
    let scheme = String(challenge.prefix { $0 != " " })
    let proxy = try LyingServer { exchange in
      if exchange.field("Proxy-Authorization")?.hasPrefix(scheme) == true {
        exchange.answer("\(exchange.body.count)")
      } else {
        exchange.answer("", status: "407 Who", "Proxy-Authenticate: \(challenge)")
      }
    }
    let body = HTTP.Content.stream(length: length) { Self.chunks() }
    let request = HTTP.Request(.post, "http://no.such.host.invalid/", body: body)
    #expect(try await end(through: proxy, request, user: "u:p@") == "200 1000")
  }

  @Test("a proxy that accepts no credentials is asked at most three times for a body that cannot be read twice")
  func stubborn() async throws {
    let proxy = try LyingServer { exchange in
      exchange.answer("", status: "407 Who", "Proxy-Authenticate: Basic realm=\"r\"")
    }
    let body = HTTP.Content.stream(length: nil) { Self.chunks() }
    let request = HTTP.Request(.post, "http://no.such.host.invalid/", body: body)
    #expect(try await end(through: proxy, request, user: "u:p@") == "proxyFailed")
    #expect(proxy.requests.value.count <= 3)
  }

  @Test(
    "an endless response to CONNECT ends the request, and delays no other", arguments: [200, 407])
  func endlessAnswer(_ status: Int) async throws {
    let proxy = try LyingServer { exchange in
      var text = "HTTP/1.1 \(status) X\r\nProxy-Authenticate: Basic realm=\"r\"\r\n"
      text += status == 200 ? "" : "Transfer-Encoding: chunked\r\n\r\n"
      let line = String(repeating: "a", count: 1000)
      for _ in 0..<300 { text += status == 200 ? "X: \(line)\r\n" : "3e8\r\n\(line)\r\n" }
      exchange.send(text)
    }
    let request = HTTP.Request("https://no.such.host.invalid/")
    #expect(try await end(through: proxy, request, user: "u:p@") == "proxyFailed")
  }

  @Test("credentials for a proxy are sent to it with CONNECT")
  func ownCredential() async throws {
    let seen = Box("")
    let proxy = try LyingServer { exchange in
      seen.update { $0 = exchange.field("Proxy-Authorization") ?? "" }
      exchange.answer("", status: "403 No")
    }
    let request = HTTP.Request("https://no.such.host.invalid/", headers: ["Proxy-Authorization": "Bearer x"])
    #expect(try await end(through: proxy, request) == "proxyFailed")
    #expect(seen.value == "Bearer x")
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The reports about each attempt to send a request.
@Suite struct AttemptReportTests {
  private static func make(_ configuration: inout HTTP.Configuration) { configuration.reportsAttempts = true }

  @Test("each attempt has its reason, its status, its connection, and the bytes of both directions")
  func attempts() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/first": exchange.answer("away", status: "302 Found", "Location: /next?secret")
      case "/next?secret":
        if exchange.field("Authorization") == nil {
          exchange.answer("", status: "401 Who", "WWW-Authenticate: Basic realm=\"r\"")
        } else {
          exchange.answer(pattern(100_000))
        }
      default: exchange.answer("\(exchange.body.count)")
      }
    }
    let remote = "127.0.0.1:\(server.url().split(separator: ":")[2].dropLast())"
    try await withClient {
      Self.make(&$0)
      $0.credential = HTTP.Credential(user: "u", password: "p")
    } _: { client in
      let (_, response) = try await client.data(for: HTTP.Request(server.url("/first")))
      let attempts = response.attempts
      try #require(attempts.count == 3)
      #expect(attempts.map(\.status) == [302, 401, 200])
      #expect(attempts.map(\.reason) == [nil, .redirect, .challenge])
      #expect(attempts.map(\.isReused) == [false, true, true])
      #expect(attempts.allSatisfy { $0.remoteAddress == remote && $0.localAddress == attempts[0].localAddress })
      #expect(attempts[0].localAddress?.hasPrefix("127.0.0.1:") == true)
      #expect(attempts[1].url.hasSuffix("/next"))
      #expect(attempts[2].bytesReceived > 100_000 && attempts[2].bytesReceived < 101_000)
      #expect(attempts.allSatisfy { $0.bytesSent > 50 && $0.bytesSent < 500 })
      let timings = attempts[0].timings
      #expect(timings.connected > .zero && timings.connected <= timings.sent && timings.sent <= timings.firstByte)
      #expect(timings.firstByte <= timings.total && timings.nameLookup == .zero && timings.secured == .zero)
      #expect(attempts[2].timings.connected == .zero)
      let post = HTTP.Request(.post, server.url("/post"), body: .bytes(pattern(70_000)))
      let sent = try await client.data(for: post).1.attempts
      #expect(sent.count == 1 && sent[0].bytesSent > 70_000 && sent[0].bytesSent < 71_000)
    }
  }

  @Test("an error lists its attempts too, even for a request that never had a connection")
  func errors() async throws {
    let server = try LyingServer { $0.close() }
    func attempts(_ url: String, _ change: (inout HTTP.Configuration) -> Void) async throws -> [HTTP.AttemptReport] {
      try await withClient {
        Self.make(&$0)
        change(&$0)
      } _: { client in
        do {
          _ = try await client.data(for: HTTP.Request(url))
          return []
        } catch let error as HTTP.Error {
          return error.attempts
        }
      }
    }
    let retried = try await attempts(server.url()) {
      $0.retry = HTTP.Retry(maximumCount: 2)
      $0.retry.delay = .milliseconds(1)
    }
    #expect(retried.map(\.reason) == [nil, .retry, .retry])
    #expect(retried.allSatisfy { $0.status == nil && $0.remoteAddress != nil && $0.bytesSent > 0 })
    let closed = try ListeningSocket(at: .loopback(port: 0))
    let port = closed.address.port ?? 0
    closed.invalidate()
    let unreached = try await attempts("http://127.0.0.1:\(port)/") { _ in }
    #expect(unreached.count == 1 && unreached[0].bytesSent == 0 && unreached[0].timings.connected == .zero)
    let silent = try LyingServer { $0.send("HTTP/1.1 200 OK\r\n") }
    let late = try await attempts(silent.url()) { $0.idleTimeout = .milliseconds(50) }
    #expect(late.count == 1 && late[0].remoteAddress != nil)
    // The request is invalid before anything is sent.
    #expect(try await attempts("http://127.0.0.1:x/") { _ in }.isEmpty)
  }

  @Test("attempts are reported only on request, and include the time of a name's look-up")
  func lookups() async throws {
    let server = try LyingServer { $0.answer("hello") }
    try await withClient { client in
      let (_, response) = try await client.data(for: HTTP.Request(server.url()))
      #expect(response.attempts.isEmpty)
    }
    try await withClient {
      Self.make(&$0)
    } _: { client in
      let request = HTTP.Request(server.url(host: "localhost"))
      let (_, first) = try await client.data(for: request)
      #expect(first.attempts[0].timings.nameLookup > .zero)
      let (_, second) = try await client.data(for: HTTP.Request(server.url()))
      #expect(second.attempts[0].timings.nameLookup == .zero)
    }
  }

  @Test("a request that the library resends by itself is reported as another attempt")
  func repetitions() async throws {
    let seen = Counter()
    let server = try FrameServer("") { stream in
      seen.add() <= 2
        ? FrameServer.frame(3, of: stream, [0, 0, 0, 7]) : FrameServer.response("hello", of: stream)
    }
    try await withClient {
      Self.make(&$0)
      $0.version = .http2
    } _: { client in
      let (_, response) = try await client.data(for: HTTP.Request(server.url))
      #expect(response.attempts.map(\.reason) == [nil, .unprocessed, .unprocessed])
      #expect(response.attempts.map(\.status) == [nil, nil, 200])
      #expect(response.attempts.allSatisfy { $0.remoteAddress != nil })
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Requests that are sent again, and those that are not.
@Suite struct ResendTests {
  /// REFUSED_STREAM.
  private static func reset(_ stream: UInt32) -> [UInt8] { FrameServer.frame(3, of: stream, [0, 0, 0, 7]) }
  /// A GOAWAY whose last stream is none.
  private static func goAway(_ stream: UInt32) -> [UInt8] { FrameServer.frame(7, [0, 0, 0, 0, 0, 0, 0, 0]) }

  /// The end of a request, and why it was sent again.
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

  /// Sends a request to a server of HTTP/2 that rejects the first ones, and returns its end and how many were seen.
  private static func end(
    rejecting count: Int, by frames: @escaping @Sendable (UInt32) -> [UInt8] = reset, _ method: HTTP.Method,
    mayResend: Bool = true
  ) async throws -> (end: String, count: Int) {
    let seen = Counter()
    let server = try FrameServer("") { stream in
      seen.add() <= count ? frames(stream) : FrameServer.response("hello", of: stream)
    }
    var request = HTTP.Request(method, server.url, body: method == .get ? nil : .bytes(pattern(1000)))
    request.allowsResending = mayResend
    let end = try await withClient {
      $0.version = .http2
    } _: { client in
      await Self.end(client, request)
    }
    return (end, seen.value)
  }

  @Test(
    "a request that the server has rejected unprocessed is sent again, whatever its method",
    arguments: [HTTP.Method.get, .post, .patch])
  func unprocessed(_ method: HTTP.Method) async throws {
    // The last number is more than the library sends a request by itself.
    for count in [0, 1, 12] {
      let (end, seen) = try await Self.end(rejecting: count, method)
      #expect(end == "200 hello" + String(repeating: " unprocessed", count: count))
      #expect(seen == count + 1)
    }
  }

  @Test("a server that goes away before a request loses no request that may be sent twice")
  func goingAway() async throws {
    let (end, seen) = try await Self.end(rejecting: 1, by: Self.goAway, .get)
    // Before 8.0 the library does not say that it was the only stream that was rejected.
    #expect(["200 hello connectionEnded", "200 hello unprocessed"].contains(end))
    #expect(seen == 2)
  }

  @Test("a request that may not be sent again is not", arguments: [HTTP.Method.get, .post])
  func forbidden(_ method: HTTP.Method) async throws {
    let (end, seen) = try await Self.end(rejecting: 1, method, mayResend: false)
    #expect(end == "connectionLost")
    #expect(seen == 1)
  }

  @Test("a server that rejects a request each time is left in the end")
  func limit() async throws {
    let (end, seen) = try await Self.end(rejecting: .max, .post)
    #expect(end == "connectionLost")
    #expect(seen > Transfer.mostResends)
  }

  @Test("a connection of HTTP/2 that ends without a word is no promise", arguments: [HTTP.Method.post, .patch])
  func cut(_ method: HTTP.Method) async throws {
    let server = try FrameServer("") { _ in nil }
    try await withClient {
      $0.version = .http2
    } _: { client in
      let end = await Self.end(client, HTTP.Request(method, server.url, body: .text("x")))
      #expect(end == "connectionLost")
    }
    #expect(server.answered.value == 1)
  }

  @Test("a misdirected request is sent once more, whatever its method, and on a new connection")
  func misdirected() async throws {
    let seen = Counter()
    let server = try LyingServer { exchange in
      let isRejected = exchange.path == "/never" || exchange.path == "/second" && seen.add() == 1
      exchange.answer("\(exchange.number)", status: isRejected ? "421 Misdirected" : "200 OK")
    }
    try await withClient { client in
      #expect(await Self.end(client, HTTP.Request(server.url())) == "200 0")
      #expect(
        await Self.end(client, HTTP.Request(.post, server.url("/second"), body: .text("x"))) == "200 0 unprocessed")
      #expect(await Self.end(client, HTTP.Request(.post, server.url("/never"))).hasSuffix(" unprocessed"))
      var once = HTTP.Request(server.url("/never"))
      once.allowsResending = false
      #expect(await Self.end(client, once).hasPrefix("421 "))
    }
    #expect(server.requests.value.filter { $0 == "POST /second" || $0 == "POST /never" }.count == 4)
    #expect(server.requests.value.filter { $0 == "GET /never" }.count == 1)
  }

  @Test("a 408 on a kept connection may have been meant for the time before, and falls under retry")
  func timeout() async throws {
    let server = try LyingServer { exchange in
      guard exchange.number > 0 || exchange.path == "/always" else { return exchange.answer("hello") }
      exchange.answer("late", status: "408 Request Timeout", "Connection: close")
      exchange.end()
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

  @Test("a response says why its request was sent again")
  func reasons() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/from": exchange.answer("", status: "302 Found", "Location: /to")
      case "/secret" where exchange.field("Authorization") == nil:
        exchange.answer("", status: "401 No", "WWW-Authenticate: Basic realm=\"r\"")
      case "/kept" where exchange.number > 0: exchange.close()
      default: exchange.answer("hello")
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

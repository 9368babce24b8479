// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Redirected connections, and limits on the wait for a connection.
@Suite struct ConnectionChoiceTests {
  @Test(
    "a host's connections can be redirected, and the server still sees the original host",
    arguments: [
      ("nowhere.invalid", "127.0.0.1:PORT"), ("NOWHERE.invalid:81", "localhost:PORT"), ("10.0.0.1", "127.0.0.1:PORT"),
      ("[2001:db8::1]", "127.0.0.1:PORT"), ("2001:db8::1", "localhost:PORT"),
    ])
  func overrides(_ host: String, _ place: String) async throws {
    let server = try LyingServer { $0.answer("\($0.field("Host") ?? "") \($0.path)") }
    let port = String(server.url().split(separator: ":")[2].dropLast())
    let shown = host.contains("::") && !host.hasPrefix("[") ? "[\(host)]" : host
    try await withClient {
      $0.hostOverrides = [host: place.replacing("PORT", with: port), "nowhere.invalid:9999": "127.0.0.1:1"]
    } _: { client in
      for path in ["/a", "/b"] {
        let end = await end(client, HTTP.Request("http://\(shown)\(path)"))
        #expect(end == "200 \(shown.lowercased()) \(path)")
      }
    }
    #expect(server.accepted.value == 1)
  }

  @Test("a rule with a port is preferred, one without it keeps the port, and other hosts are unaffected")
  func ports() async throws {
    let servers = try (0..<2).map { number in try LyingServer { $0.answer("\(number)") } }
    let ports = servers.map { String($0.url().split(separator: ":")[2].dropLast()) }
    try await withClient {
      $0.hostOverrides = ["a.invalid:\(ports[1])": "127.0.0.1:\(ports[0])", "a.invalid": "127.0.0.1"]
    } _: { client in
      #expect(await end(client, HTTP.Request("http://a.invalid:\(ports[1])/")) == "200 0")
      #expect(await end(client, HTTP.Request("http://a.invalid:\(ports[0])/")) == "200 0")
      #expect(await end(client, HTTP.Request(servers[1].url())) == "200 1")
      #expect(await end(client, HTTP.Request("http://b.invalid/")) == "cannotFindHost")
    }
  }

  @Test("a redirect, a proxy and a certificate see the host of the request")
  func names() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/away" {
        exchange.answer("", status: "302 Found", "Location: http://b.invalid/there")
      } else {
        exchange.answer("\(exchange.field("Host") ?? "") \(exchange.path)")
      }
    }
    let address = String(server.url().dropFirst(7).dropLast())
    try await withClient {
      $0.hostOverrides = ["a.invalid": address, "b.invalid": address]
    } _: { client in
      #expect(await end(client, HTTP.Request("http://a.invalid/away")) == "200 b.invalid /there")
      var request = HTTP.Request("http://a.invalid/")
      request.proxy = .url(server.url())
      #expect(await end(client, request) == "200 a.invalid http://a.invalid/")
    }
  }

  @Test(
    "a malformed host override is an error of each request, with its text",
    arguments: [
      "", "a b", "127.0.0.1:0", "127.0.0.1:99999", "a.invalid/path", "u:p@a.invalid", "[::1", "[::1]:x", "a\0b", "a?b",
    ])
  func malformed(_ text: String) async throws {
    for overrides in [["a.invalid": text], [text: "127.0.0.1"]] {
      try await withClient {
        $0.hostOverrides = overrides
      } _: { client in
        do {
          _ = try await client.data(for: HTTP.Request("http://127.0.0.1:1/"))
          Issue.record("there is a response")
        } catch let error as HTTP.Error {
          #expect(error.code == .invalidRequest && error.detail.contains(text))
        }
      }
    }
  }

  @Test("a request that waits too long for a connection fails with its own error, and the others continue")
  func waiting() async throws {
    let held = Box<[LyingServer.Exchange]>([])
    let server = try LyingServer { exchange in held.update { $0.append(exchange) } }
    try await withClient {
      $0.connectionsPerHost = 1
      $0.connectionWaitTimeout = .milliseconds(50)
      $0.retry = HTTP.Retry(maximumCount: 3)
    } _: { client in
      async let first = end(client, HTTP.Request(server.url("/first")))
      await eventually { held.value.count == 1 }
      #expect(await end(client, HTTP.Request(server.url("/second"))) == "connectionWaitTimedOut")
      held.value[0].answer("whole")
      #expect(await first == "200 whole")
      // A free connection needs no wait.
      async let third = end(client, HTTP.Request(server.url("/third")))
      await eventually { held.value.count == 2 }
      held.value[1].answer("third")
      #expect(await third == "200 third")
    }
    #expect(server.requests.value == ["GET /first", "GET /third"])
  }

  @Test("with a wait of zero, a request takes only a connection that is free or can be made")
  func noWait() async throws {
    let held = Box<[LyingServer.Exchange]>([])
    let server = try LyingServer { exchange in
      if exchange.path == "/held" { held.update { $0.append(exchange) } } else { exchange.answer("hello") }
    }
    try await withClient {
      $0.connectionsPerHost = 1
      $0.connectionWaitTimeout = .zero
    } _: { client in
      let hello = [String](repeating: "200 hello", count: 3)
      #expect(await ends(client, HTTP.Request(server.url()), times: 3) == hello)
      async let first = end(client, HTTP.Request(server.url("/held")))
      await eventually { held.value.count == 1 }
      #expect(await end(client, HTTP.Request(server.url())) == "connectionWaitTimedOut")
      held.value[0].answer("late")
      #expect(await first == "200 late")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The questions and reports that a program receives while a request is in progress.
@Suite struct HookTests {
  private static func guarded(_ password: String) throws -> LyingServer {
    let expected = "Basic " + base64(Array("user:\(password)".utf8))
    return try LyingServer { exchange in
      if exchange.field("Authorization") == expected {
        exchange.answer("in")
      } else {
        exchange.answer("who?", status: "401 Who", "WWW-Authenticate: Basic realm=\"the realm\"")
      }
    }
  }

  /// The outcome of an operation, as text for comparison with a literal.
  private func outcome(_ operation: HTTP.Operation) async -> String {
    do {
      let (body, response) = try await operation.value()
      return "\(response.status.code) \(body.text ?? "")"
    } catch let error as HTTP.Error {
      return error.code.name
    } catch {
      return "\(error)"
    }
  }

  @Test("the program is asked for credentials until the server accepts them, and sees which were rejected")
  func challenges() async throws {
    let server = try Self.guarded("third")
    try await withClient {
      $0.credential = HTTP.Credential(user: "user", password: "first")
    } _: { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      let log = Box<[String]>([])
      operation.onChallenge { challenge in
        log.update {
          let proposed = challenge.proposed?.password ?? "-"
          $0.append("\(challenge.scheme) \(challenge.realm) \(challenge.failureCount) \(proposed)")
        }
        return challenge.failureCount == 0
          ? challenge.proposed
          : HTTP.Credential(user: "user", password: challenge.failureCount == 1 ? "second" : "third")
      }
      #expect(await outcome(operation) == "200 in")
      #expect(log.value == ["basic the realm 0 first", "basic the realm 1 -", "basic the realm 2 -"])
    }
  }

  @Test("a challenge without credentials is the response, and repeatedly wrong credentials are an error")
  func unanswered() async throws {
    let server = try Self.guarded("none")
    try await withClient { client in
      let silent = client.operation(HTTP.Request(server.url()), on: .main)
      silent.onChallenge { _ in nil }
      #expect(await outcome(silent) == "401 who?")
      let elsewhere = client.operation(HTTP.Request(server.url()), on: .main)
      elsewhere.onChallenge { _ in HTTP.Credential(user: "user", password: "none", origin: "https://other.example:443")
      }
      #expect(await outcome(elsewhere) == "401 who?")
      let stubborn = client.operation(HTTP.Request(server.url()), on: .main)
      let count = Counter()
      stubborn.onChallenge { _ in
        count.add()
        return HTTP.Credential(user: "user", password: "wrong")
      }
      #expect(await outcome(stubborn) == "authenticationFailed")
      #expect(count.value == 10)
    }
  }

  @Test("credentials with a control character are rejected, from the URL and from the program")
  func injection() async throws {
    let server = try Self.guarded("none")
    try await withClient { client in
      let url = server.url().replacing("http://", with: "http://u%0d%0aX:p@")
      #expect(await end(client, HTTP.Request(url)) == "invalidRequest")
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.onChallenge { _ in HTTP.Credential(user: "user\r\nX: y", password: "") }
      #expect(await outcome(operation) == "invalidRequest")
    }
    #expect(server.requests.value.count == 1)
  }

  @Test("a redirect that the program changes to an invalid request is an error, and nothing is sent")
  func redirectInjection() async throws {
    let server = try LyingServer { exchange in
      exchange.answer("there", status: exchange.path == "/here" ? "302 Found" : "200 OK", "Location: /there")
    }
    try await withClient { client in
      for change: @Sendable (inout HTTP.Request) -> Void in [
        { $0.headers["X"] = "a\r\nY: b" }, { $0.method = HTTP.Method("GET / HTTP/1.1\r\nY: b\r\n\r\nGET") },
        { $0.headers["Transfer-Encoding"] = "chunked" },
      ] {
        let operation = client.operation(HTTP.Request(server.url("/here")), on: .main)
        operation.onRedirect { next, _ in
          var next = next
          change(&next)
          return next
        }
        #expect(await outcome(operation) == "invalidRequest")
      }
    }
    #expect(server.requests.value == ["GET /here", "GET /here", "GET /here"])
  }

  @Test("a user agent with a control character is never sent")
  func agentInjection() async throws {
    let server = try LyingServer { $0.answer($0.field("X") ?? "none") }
    try await withClient {
      $0.userAgent = "agent\r\nX: y"
    } _: { client in
      #expect(await end(client, HTTP.Request(server.url())) == "invalidRequest")
    }
    #expect(server.requests.value == [])
  }

  @Test("a redirect that the program sends elsewhere carries only secrets that the program has set")
  func redirectedSecrets() async throws {
    let other = try LyingServer { $0.answer($0.field("Authorization") ?? "none") }
    let server = try LyingServer { $0.answer("", status: "302 Found", "Location: /there") }
    try await withClient { client in
      let target = other.url()
      let request = HTTP.Request(server.url("/here"), headers: ["Authorization": "Bearer secret"])
      let moved = client.operation(request, on: .main)
      moved.onRedirect { next, _ in
        var next = next
        next.url = target
        return next
      }
      #expect(await outcome(moved) == "200 none")
      let meant = client.operation(request, on: .main)
      meant.onRedirect { next, _ in
        var next = next
        next.url = target
        next.headers["Authorization"] = "Bearer other"
        return next
      }
      #expect(await outcome(meant) == "200 Bearer other")
    }
  }

  @Test("cookies are reported on the operation's loop, including those of redirects, and stay with their port")
  func cookies() async throws {
    let other = try LyingServer { $0.answer($0.field("Cookie") ?? "none") }
    let server = try LyingServer { exchange in
      if exchange.path == "/from" {
        exchange.answer("", status: "302 Found", "Location: /to", "Set-Cookie: a=1")
      } else {
        exchange.answer(exchange.field("Cookie") ?? "none", "Set-Cookie: b=2")
      }
    }
    try await withClient {
      $0.storesCookies = true
    } _: { client in
      let log = Box<[String]>([])
      let url = server.url("/from")
      await elsewhere {
        let loop = RunLoop.current
        let operation = client.operation(HTTP.Request(url))
        operation.onCookies { cookies in
          log.update { $0 += cookies.map { "\($0.name)=\($0.value) \(RunLoop.current == loop)" } }
        }
        operation.onCompletion { _ in loop.stop() }
        operation.start()
        loop.runUntilStopped()
      }
      #expect(log.value == ["a=1 true", "b=2 true"])
      #expect(await end(client, HTTP.Request(other.url())) == "200 none")
      #expect(await end(client, HTTP.Request(server.url("/to"))) == "200 a=1; b=2")
    }
  }

  @Test("an operation's progress is a sequence that begins with the current state and ends with the operation")
  func progress() async throws {
    let rest = Latch()
    let server = try LyingServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
      exchange.send(pattern(500_000))
      rest.wait()
      exchange.send(pattern(500_000))
    }
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), output: .discard, on: .main)
      var counts: [Int64] = []
      var values = operation.progressValues().makeAsyncIterator()
      // Only the newest value is kept, so the first is taken before there is another.
      if let progress = await values.next() { counts.append(progress.received) }
      operation.start()
      while let progress = await values.next() {
        counts.append(progress.received)
        if progress.received == 500_000 { rest.open() }
      }
      #expect(counts.first == 0)
      #expect(counts.contains(500_000))
      #expect(counts == counts.sorted())
      // After the end, the sequence contains the last value.
      var last: [Int64] = []
      for await progress in operation.progressValues() { last.append(progress.received) }
      #expect(last == [1_000_000])
    }
  }
}

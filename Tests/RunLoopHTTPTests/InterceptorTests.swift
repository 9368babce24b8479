// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Interceptors that wait, see responses and errors, and request retries.
@Suite struct InterceptorTests {
  private static func end(
    _ server: LyingServer, path: String = "/", body: HTTP.Content? = nil, _ interceptors: HTTP.Interceptor...
  ) async throws -> String {
    try await withClient {
      $0.interceptors = interceptors
    } _: { client in
      await RunLoopHTTPTests.end(client, HTTP.Request(body == nil ? .get : .post, server.url(path), body: body))
    }
  }

  /// Suspends an interceptor, as waiting for another task would.
  private static func wait() async { await Task.detached {}.value }

  @Test("a request is changed once, after a wait, and its response by the interceptors in reverse order")
  func order() async throws {
    let server = try LyingServer { $0.answer($0.field("X") ?? "-") }
    let log = Log()
    func interceptor(_ name: String) -> HTTP.Interceptor {
      HTTP.Interceptor { request in
        log.write("ask \(name)")
        await Self.wait()
        var request = request
        request.headers["X"] = (request.headers["X"] ?? "") + name
        return .proceed(request)
      } response: { outcome, request in
        await Self.wait()
        guard case .success(let response) = outcome else { return .proceed }
        log.write("see \(name) \(response.status.code) \(response.headers["Y"] ?? "-") \(request.headers["X"] ?? "-")")
        return .change(HTTP.Response(status: 203, headers: ["Y": name]))
      }
    }
    let end = try await Self.end(server, interceptor("a"), interceptor("b"))
    #expect(end == "203 ab")
    #expect(log.text == "ask a ask b see b 200 - ab see a 203 b ab")
  }

  @Test("responses without a body, compressed, or large wait for the interceptor")
  func bodies() async throws {
    let gzip: [UInt8] = [
      31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
    ]
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/empty": exchange.answer("")
      case "/none": exchange.send("HTTP/1.1 204 None\r\n\r\n")
      case "/gzip": exchange.answer(gzip, ["Content-Encoding: gzip"])
      case "/large": exchange.answer(pattern(3_000_000))
      default: exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end"); exchange.end()
      }
    }
    for (path, expected) in [
      ("/empty", "200 "), ("/none", "204 "), ("/gzip", "200 hello"), ("/large", "200 3000000 bytes"),
      ("/end", "200 to the end"),
    ] {
      let end = try await Self.end(
        server, path: path,
        HTTP.Interceptor(response: { _, _ in
          await Self.wait()
          return .proceed
        }))
      #expect(end == expected, "\(path)")
    }
  }

  @Test("an interceptor may retry a response or an error, up to a limit")
  func retries() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/lost" { return exchange.close() }
      exchange.answer("\(exchange.body.count)", status: exchange.field("Token") == "new" ? "200 OK" : "403 No")
    }
    let refresh = HTTP.Interceptor(response: { outcome, request in
      guard case .success(let response) = outcome, response.status == 403 else { return .proceed }
      await Self.wait()
      var request = request
      request.headers["Token"] = "new"
      return .retry(request)
    })
    #expect(try await Self.end(server, refresh) == "200 0")
    // A body that is created again for each attempt.
    let body = HTTP.Content.stream {
      AsyncStream<[UInt8]> { continuation in
        for _ in 0..<3 { continuation.yield([1, 2]) }
        continuation.finish()
      }
    }
    #expect(try await Self.end(server, body: body, refresh) == "200 6")
    let elsewhere = HTTP.Interceptor(response: { outcome, request in
      guard case .failure(let error) = outcome, error.code == .connectionLost else { return .proceed }
      return .retry(HTTP.Request(request.url.replacing("/lost", with: "/"), headers: ["Token": "new"]))
    })
    #expect(try await Self.end(server, path: "/lost", elsewhere) == "200 0")
    let count = Counter()
    let always = HTTP.Interceptor(response: { _, request in
      count.add()
      return .retry(request)
    })
    #expect(try await Self.end(server, always) == "invalidRequest")
    #expect(count.value == Transfer.mostResends + 1)
  }

  @Test("an interceptor may respond instead of a server, or fail the request")
  func answers() async throws {
    let server = try LyingServer { $0.answer(pattern(300_000)) }
    let own = HTTP.Interceptor(response: { _, _ in .respond(HTTP.Response(status: 200), HTTP.Body("own")) })
    #expect(try await Self.end(server, own) == "200 own")
    let failing = HTTP.Interceptor(response: { _, _ in .fail(.untrusted, "a test") })
    #expect(try await Self.end(server, failing) == "untrusted")
    try await withClient {
      $0.interceptors = [own]
    } _: { client in
      let (body, response) = try await client.data(for: HTTP.Request("http://127.0.0.1:1/"))
      #expect(body.text == "own" && response.isIntercepted && response.resends == [.interceptor])
      // Errors in the request itself are not passed to interceptors.
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request("ftp://127.0.0.1/")) == "unsupportedURL")
    }
  }

  @Test("after bytes were delivered the error is final, whatever an interceptor decides")
  func deliveredBytes() async throws {
    let count = Counter()
    let server = try LyingServer { exchange in
      count.add()
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
      exchange.close()
    }
    try await withClient {
      $0.interceptors = [
        HTTP.Interceptor(response: { outcome, request in
          if case .failure = outcome { .retry(request) } else { .proceed }
        })
      ]
    } _: { client in
      let (body, _) = try await client.stream(for: HTTP.Request(server.url()))
      await #expect(throws: HTTP.Error.self) { for try await _ in body {} }
    }
    #expect(count.value == 1)
  }

  enum Place: CaseIterable, Sendable { case request, response, failure }

  @Test("a cancelled request waits for no interceptor, and cancels its task", arguments: Place.allCases)
  func cancelling(_ place: Place) async throws {
    let server = try LyingServer { exchange in
      if place == .failure { exchange.close() } else { exchange.answer("hello") }
    }
    let (reached, ended) = (Latch(), Latch())
    @Sendable func hang() async {
      reached.open()
      try? await Task.sleep(for: .seconds(1 << 30))
      ended.open()
    }
    try await withClient {
      $0.interceptors = [
        HTTP.Interceptor { request in
          if place == .request { await hang() }
          return .proceed(request)
        } response: { _, request in
          await hang()
          return .retry(request)
        }
      ]
    } _: { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await elsewhere { reached.wait() }
      operation.cancel()
      await #expect(throws: HTTP.Error.self) { try await operation.value() }
      await elsewhere { ended.wait() }
    }
    #expect(server.requests.value.count == (place == .request ? 0 : 1))
  }

  @Test("a client that is stopped immediately waits for no interceptor, and one that drains does")
  func stopping() async throws {
    let reached = Latch()
    var configuration = HTTP.Configuration()
    configuration.interceptors = [
      .init { _ in
        reached.open()
        try? await Task.sleep(for: .seconds(1 << 30))
        return .fail(.timedOut, "late")
      }
    ]
    let client = HTTP.Client(configuration)
    let operation = client.operation(HTTP.Request("http://127.0.0.1:1/"), on: .main)
    operation.start()
    await elsewhere { reached.wait() }
    client.stop(.immediately)
    _ = await client.finished()
    do { _ = try await operation.value() } catch let error as HTTP.Error { #expect(error.code == .stopped) }
    configuration.interceptors = [
      .init { _ in
        await Self.wait()
        return .respond(HTTP.Response(status: 200), HTTP.Body("drained"))
      }
    ]
    let draining = HTTP.Client(configuration)
    let last = draining.operation(HTTP.Request("http://127.0.0.1:1/"), on: .main)
    last.start()
    draining.stop()
    #expect(try await last.value().0.text == "drained")
    _ = await draining.finished()
  }

  @Test("the total timeout includes the time of interceptors, and the idle timeout does not")
  func timeouts() async throws {
    let server = try LyingServer { $0.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello") }
    try await withClient {
      $0.totalTimeout = .milliseconds(50)
      $0.interceptors = [
        .init { request in
          try? await Task.sleep(for: .seconds(1 << 30))
          return .proceed(request)
        }
      ]
    } _: { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "timedOut")
    }
    let seen = Log()
    try await withClient {
      $0.idleTimeout = .milliseconds(50)
      $0.interceptors = [
        HTTP.Interceptor { request in
          try? await Task.sleep(for: .milliseconds(200))
          return .proceed(request)
        } response: { outcome, _ in
          try? await Task.sleep(for: .milliseconds(200))
          if case .failure(let error) = outcome { seen.write("\(error.code) \(error.bytesReceived)") }
          return .proceed
        }
      ]
    } _: { client in
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "timedOut")
    }
    #expect(seen.text == "timedOut 5")
    #expect(server.requests.value.count == 1)
  }

  @Test("the error of a wait for a connection is passed to the interceptors once, however long they take")
  func waiting() async throws {
    let (seen, held) = (Log(), Box<LyingServer.Exchange?>(nil))
    let server = try LyingServer { exchange in held.value = exchange }
    try await withClient {
      $0.connectionsPerHost = 1
      $0.connectionWaitTimeout = .milliseconds(1)
      $0.interceptors = [
        HTTP.Interceptor(response: { outcome, _ in
          guard case .failure(let error) = outcome else { return .proceed }
          seen.write(error.code.name)
          // The client checks its timeouts in the meantime.
          _ = try? await withClient {
            $0.idleTimeout = .milliseconds(50)
          } _: { other in
            try await other.data(for: HTTP.Request(server.url("/silent")))
          }
          return .proceed
        })
      ]
    } _: { client in
      async let first = RunLoopHTTPTests.end(client, HTTP.Request(server.url("/first")))
      await eventually { held.value != nil }
      let exchange = held.value
      #expect(await RunLoopHTTPTests.end(client, HTTP.Request(server.url())) == "connectionWaitTimedOut")
      exchange?.answer("first")
      #expect(await first == "200 first")
    }
    #expect(seen.text == "connectionWaitTimedOut")
  }

  @Test("a resumed request asks its interceptors again, and ignores their earlier decision")
  func pausing() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let (reached, count) = (Latch(), Counter())
    try await withClient {
      $0.interceptors = [
        HTTP.Interceptor(response: { _, _ in
          guard count.add() == 1 else { return .proceed }
          reached.open()
          try? await Task.sleep(for: .seconds(1 << 30))
          return .fail(.untrusted, "too late")
        })
      ]
    } _: { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await elsewhere { reached.wait() }
      operation.pause()
      operation.resume()
      let (body, _) = try await operation.value()
      #expect(body.text == "hello")
    }
    #expect(count.value == 2)
  }
}

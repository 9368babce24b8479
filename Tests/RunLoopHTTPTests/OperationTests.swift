// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Operations: their life cycle, their reports, and where these arrive.
@Suite struct OperationTests {
  /// Starts a server that sends half of a million bytes, and the other half when a latch opens.
  private static func halfServer(_ rest: Latch, tag: String = "\"v1\"", ranges: Bool = true) throws -> LyingServer {
    try LyingServer { exchange in
      let body = pattern(1_000_000)
      if ranges, let range = exchange.field("Range"), let first = Int(range.dropFirst(6).dropLast()),
        exchange.field("If-Range") == tag
      {
        exchange.answer(
          Array(body[first...]), status: "206 Part",
          ["ETag: \(tag)", "Content-Range: bytes \(first)-\(body.count - 1)/\(body.count)"])
        return
      }
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \(tag)\r\n\r\n")
      exchange.send(Array(body[..<500_000]))
      if rest.isOpen { exchange.send(Array(body[500_000...])) }
    }
  }

  /// Waits for an operation's end, off the pool's threads.
  private func outcome(_ operation: HTTP.Operation) async -> OperationReceiver.Outcome {
    await withCheckedContinuation { continuation in
      operation.onCompletion(on: .immediately) { continuation.resume(returning: $0) }
    }
  }

  @Test("a pause closes the connection, and a resumption requests the rest of the same version")
  func pausing() async throws {
    let rest = Latch()
    let server = try Self.halfServer(rest)
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await eventually { operation.progress.received == 500_000 }
      #expect(operation.state == .receiving)
      operation.pause()
      await eventually { operation.state == .paused && server.ended.value == 1 }
      operation.resume()
      let (body, response) = try await outcome(operation).get()
      #expect(body.bytes == pattern(1_000_000))
      #expect(response.status == 200)
      #expect(server.accepted.value == 2)
    }
  }

  @Test(
    "a download restarts if its version is weak or the server does not support ranges", arguments: [true, false])
  func restarting(_ isWeak: Bool) async throws {
    let rest = Latch()
    let server = try Self.halfServer(rest, tag: isWeak ? "W/\"v1\"" : "\"v1\"", ranges: isWeak)
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await eventually { operation.progress.received == 500_000 }
      rest.open()
      operation.pause()
      operation.resume()
      let (body, _) = try await outcome(operation).get()
      #expect(body.bytes == pattern(1_000_000))
    }
  }

  @Test(
    "a partial response that does not continue where the body ended is a mismatch",
    arguments: [
      ("206 Part", "Content-Range: bytes 5-9/1000000"), ("206 Part", "Content-Range: bytes 500000-999999/1000001"),
      ("206 Part", "A: b"), ("206 Part", "Content-Range: bytes 500000-600000/1000000"),
      ("206 Part", "Content-Range: bytes 500000-999999/1000000\r\nETag: \"v2\""),
      ("206 Part", "Content-Range: bytes 500000-999999/1000000\r\nContent-Encoding: gzip"),
      ("416 None", "Content-Range: bytes */1000000"),
    ])
  func mismatches(_ status: String, _ field: String) async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Range") == nil {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"v1\"\r\n\r\n")
        exchange.send(pattern(500_000))
      } else {
        exchange.send("HTTP/1.1 \(status)\r\n\(field)\r\n\r\n")
        exchange.end()
      }
    }
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await eventually { operation.progress.received == 500_000 }
      operation.pause()
      operation.resume()
      guard case .failure(let error) = await outcome(operation) else {
        return #expect(Bool(false), "there is an answer")
      }
      #expect(error.code == .resumeMismatch)
      #expect(error.bytesReceived == 500_000)
    }
  }

  @Test(
    "a partial response with fewer or more bytes than announced is rejected",
    arguments: [
      ("A: b", "fewer", "connectionLost"), ("A: b", String(repeating: "m", count: 101), "badServerResponse"),
      ("Transfer-Encoding: chunked", "5\r\nfewer\r\n0\r\n\r\n", "badServerResponse"),
      (
        "Transfer-Encoding: chunked", "65\r\n" + String(repeating: "m", count: 101) + "\r\n0\r\n\r\n",
        "badServerResponse"
      ),
    ])
  func wrongParts(_ field: String, _ rest: String, _ code: String) async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Range") == nil {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 200\r\nETag: \"v1\"\r\n\r\n")
        exchange.send(pattern(100))
      } else {
        exchange.send("HTTP/1.1 206 Part\r\nContent-Range: bytes 100-199/200\r\n\(field)\r\n\r\n\(rest)")
        exchange.end()
      }
    }
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      await eventually { operation.progress.received == 100 }
      operation.pause()
      operation.resume()
      guard case .failure(let error) = await outcome(operation) else {
        return #expect(Bool(false), "there is an answer")
      }
      #expect(error.code.name == code)
    }
  }

  @Test(
    "a server that accepts each digest nonce once, or counts its uses, resumes a body repeatedly",
    arguments: [true, false])
  func digestParts(_ takesOnce: Bool) async throws {
    let used = Box<Set<String>>([])
    let asked = Counter()
    let server = try LyingServer { exchange in
      let parts = (exchange.field("Authorization") ?? "").split(separator: ", ")
      let name = takesOnce ? "nonce=" : "nc="
      guard let use = parts.first(where: { $0.hasPrefix(name) }),
        used.update({ $0.insert(String(use)).inserted })
      else {
        asked.add()
        let number = takesOnce ? asked.value : 0
        return exchange.answer(
          "who?", status: "401 Who", "WWW-Authenticate: Digest realm=\"r\", nonce=\"\(number)\", qop=\"auth\"")
      }
      let first = exchange.field("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
      let range = first.map { "206 Part\r\nContent-Range: bytes \($0)-199/200" } ?? "200 OK"
      exchange.send("HTTP/1.1 \(range)\r\nETag: \"v1\"\r\nContent-Length: \(200 - (first ?? 0))\r\n\r\n")
      exchange.send(pattern(50, from: first ?? 0))
    }
    try await withClient {
      $0.credential = HTTP.Credential(user: "user", password: "pass")
    } _: { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      for count in [50, 100, 150] as [Int64] {
        await eventually { operation.progress.received == count || operation.state == .finished }
        operation.pause()
        operation.resume()
      }
      let (body, _) = try await outcome(operation).get()
      #expect(body.bytes == pattern(200))
      #expect(asked.value == (takesOnce ? 4 : 1))
    }
  }

  @Test("a partial response that ends early is resumed if the request may be repeated")
  func cutParts() async throws {
    let server = try LyingServer { exchange in
      let first = exchange.field("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
      let range = first.map { "206 Part\r\nContent-Range: bytes \($0)-199/200" } ?? "200 OK\r\nContent-Length: 200"
      exchange.send("HTTP/1.1 \(range)\r\nETag: \"v1\"\r\n\r\n")
      exchange.send(pattern(50, from: first ?? 0))
      exchange.end()
    }
    try await withClient {
      $0.retry.maximumCount = 3
      $0.retry.delay = .zero
    } _: { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      operation.start()
      let (body, _) = try await outcome(operation).get()
      #expect(body.bytes == pattern(200))
      #expect(server.requests.value.count == 4)
    }
  }

  @Test("while an operation is held no bytes are read, and the connection stays open")
  func holding() async throws {
    let server = try LyingServer { $0.answer(pattern(20_000_000)) }
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), output: .discard, on: .main)
      operation.pauseReading()
      operation.start()
      await eventually { operation.state == .held }
      #expect(operation.progress.received == 0)
      #expect(operation.response?.status == 200)
      operation.resumeReading()
      _ = try await outcome(operation).get()
      #expect(operation.progress.received == 20_000_000)
      #expect(server.accepted.value == 1)
    }
  }

  @Test(
    "a cancelled operation ends once as cancelled, whatever its phase",
    arguments: ["ready", "sending", "receiving", "held", "paused"])
  func cancelling(_ place: String) async throws {
    let rest = Latch()
    let server = place == "sending" ? try LyingServer { _ in } : try Self.halfServer(rest)
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: .main)
      let ends = Box<[String]>([])
      operation.onCompletion(on: .immediately) { result in
        if case .failure(let error) = result {
          ends.update { $0.append(error.code.name) }
        } else {
          ends.update { $0.append("?") }
        }
      }
      if place != "ready" { operation.start() }
      switch place {
      case "ready": break
      case "sending": await eventually { server.requests.value.count == 1 }
      default: await eventually { operation.progress.received == 500_000 }
      }
      if place == "held" { operation.pauseReading() }
      if place == "paused" { operation.pause() }
      operation.cancel()
      operation.start()
      operation.resume()
      operation.cancel()
      await eventually { operation.state == .finished && !ends.value.isEmpty }
      #expect(operation.isCancelled)
      client.stop()
      let report = await client.finished()
      #expect(ends.value == ["cancelled"])
      #expect(report.cancelledCount == 1)
      await eventually { server.ended.value == server.accepted.value }
    }
  }

  @Test("an operation reports on its loop in its modes, with progress at most once a pass")
  func reporting() async throws {
    let server = try LyingServer { $0.answer(pattern(3_000_000)) }
    try await withClient { client in
      let log = Box<[String]>([])
      let url = server.url()
      await elsewhere {
        let loop = RunLoop.current
        let mode = RunLoop.Mode("network")
        let operation = client.operation(HTTP.Request(url), inModes: [mode])
        let passes = Counter()
        let last = Box(0)
        let observer = RunLoop.Observer(activities: .beforeSources) { _, _ in passes.add() }
        loop.add(observer, forMode: mode)
        operation.onResponse { response in
          log.update { $0.append("\(response.status.code) \(loop.currentMode?.rawValue ?? "")") }
        }
        operation.onProgress { _ in
          if last.value == passes.value { log.update { $0.append("twice in a pass") } }
          last.value = passes.value
        }
        operation.onCompletion { result in
          log.update { $0.append("\((try? result.get().0.count) ?? 0) \(loop == RunLoop.current)") }
          loop.stop()
        }
        operation.start()
        while !log.value.contains(where: { $0.hasPrefix("3000000") }) { loop.run(mode: mode, for: .seconds(600)) }
        loop.remove(observer, forMode: mode)
      }
      #expect(log.value == ["200 network", "3000000 true"])
    }
  }

  @Test("the end is reported on the loader's thread if the operation's loop has ended")
  func endedLoop() async throws {
    let server = try LyingServer { $0.answer("ok") }
    let thread = try ResidentThread(name: "short")
    let loop = thread.runLoop
    thread.stop()
    _ = await thread.finished()
    try await withClient { client in
      let operation = client.operation(HTTP.Request(server.url()), on: loop)
      let isDone = Latch()
      operation.onCompletion { _ in isDone.open() }
      operation.start()
      await elsewhere { isDone.wait() }
      #expect(operation.reportsElsewhere)
    }
  }

  @Test("a batch ends once, after all of its operations have ended")
  func batches() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/bad" { exchange.close() } else { exchange.answer("ok") }
    }
    try await withClient { client in
      let numbers = Box<[Int]>([])
      let (good, bad) = (server.url("/good"), server.url("/bad"))
      await elsewhere {
        let loop = RunLoop.current
        let operations = [good, bad, good, good].map { client.operation(HTTP.Request($0)) }
        operations[3].cancel()
        HTTP.Operation.batch(operations, progress: { number in numbers.update { $0.append(number) } }) { loop.stop() }
        #expect(loop.runUntilStopped() == .stopped)
        let empty = Counter()
        HTTP.Operation.batch([]) {
          empty.add()
          loop.stop()
        }
        #expect(loop.runUntilStopped() == .stopped)
        #expect(empty.value == 1)
      }
      #expect(numbers.value == [1, 2, 3, 4])
    }
  }

  @Test("the program may change or reject a redirect")
  func redirectHook() async throws {
    let server = try LyingServer { exchange in
      if exchange.path.hasPrefix("/from") {
        exchange.answer("", status: "302 Found", "Location: /there")
      } else {
        exchange.answer(exchange.path)
      }
    }
    try await withClient { client in
      let changed = client.operation(HTTP.Request(server.url("/from")), on: .main)
      let target = server.url("/changed")
      changed.onRedirect { next, response in
        #expect(response.status == 302)
        var next = next
        next.url = target
        return next
      }
      let (body, _) = try await changed.value()
      #expect(body.text == "/changed")
      let rejected = client.operation(HTTP.Request(server.url("/from")), on: .main)
      rejected.onRedirect { _, _ in nil }
      await #expect(throws: HTTP.Error.self) { try await rejected.value() }
      #expect(rejected.response == nil)
    }
  }
}

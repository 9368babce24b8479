// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Bodies as sequences and files, decoding, and the shutdown of clients.
@Suite struct DeliveryTests {
  @Test("a sequence has the whole body, in chunks of any size")
  func streaming() async throws {
    let server = try LyingServer { $0.answer(pattern(5_000_000)) }
    try await withClient { client in
      let (body, response) = try await client.stream(for: HTTP.Request(server.url()))
      #expect(response.status == 200)
      var bytes: [UInt8] = []
      for try await chunk in body {
        #expect(!chunk.isEmpty)
        bytes += chunk
      }
      #expect(bytes == pattern(5_000_000))
    }
  }

  @Test("a buffer stops reading at its high mark and continues at its low mark")
  func marks() async throws {
    let buffer = BodyBuffer { _ in }
    let chunk = [UInt8](repeating: 7, count: 64 * 1024)
    var answers: [Bool] = []
    for _ in 0..<5 { answers.append(try chunk.withUnsafeBytes { try buffer.take($0) }) }
    #expect(answers == [true, true, true, false, false])
    var asked: [Int] = []
    for number in 1...5 {
      let next = try await buffer.next { asked.append(number) }
      #expect(next?.count == chunk.count)
    }
    #expect(asked == [4])
    buffer.finish(.success(HTTP.Response(status: 200)))
    #expect(try await buffer.next {} == nil)
    #expect(try await buffer.next {} == nil)
  }

  @Test("a buffer uses little more memory than its bytes, however small and numerous the chunks are")
  func smallChunks() async throws {
    let bytewise = BodyBuffer { _ in }
    for number in 0..<100_000 {
      _ = try [UInt8(truncatingIfNeeded: number)].withUnsafeBytes { try bytewise.take($0) }
    }
    #expect(bytewise.slotCount <= 100_000 / BodyBuffer.chunkSize + 1)
    bytewise.finish(.success(HTTP.Response(status: 200)))
    var bytes: [UInt8] = []
    while let chunk = try await bytewise.next({}) { bytes += chunk }
    #expect(bytes == (0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
    // A consumer that is always one chunk behind.
    let behind = BodyBuffer { _ in }
    let chunk = [UInt8](repeating: 7, count: BodyBuffer.chunkSize)
    for number in 0..<10_000 {
      _ = try chunk.withUnsafeBytes { try behind.take($0) }
      if number > 0 { _ = try await behind.next {} }
    }
    #expect(behind.slotCount < 100)
  }

  @Test("releasing a sequence cancels its request")
  func droppedSequence() async throws {
    let server = try LyingServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
      exchange.send(pattern(10_000_000))
    }
    try await withClient { client in
      do {
        let (body, _) = try await client.stream(for: HTTP.Request(server.url()))
        var iterator = body.makeAsyncIterator()
        _ = try await iterator.next()
      }
      await eventually { server.ended.value == 1 }
      client.stop()
      #expect(await client.finished().cancelledCount == 1)
    }
  }

  @Test("a truncated body ends a sequence with an error after the bytes that arrived")
  func cutSequence() async throws {
    let server = try LyingServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
      exchange.end()
    }
    try await withClient { client in
      let (body, _) = try await client.stream(for: HTTP.Request(server.url()))
      var text = ""
      do {
        for try await chunk in body { text += String(decoding: chunk, as: UTF8.self) }
        Issue.record("the body has an end")
      } catch let error as HTTP.Error {
        #expect(error.code == .connectionLost)
        #expect(error.bytesReceived == 5)
      }
      #expect(text == "hello")
    }
  }

  @Test("a sequence whose response was taken does not receive the body of another response")
  func secondAnswer() async throws {
    let (asked, isTaken) = (Counter(), Latch())
    let server = try LyingServer { exchange in
      guard asked.add() == 1 else { return exchange.answer("wrong", status: "500 Wrong") }
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      isTaken.wait()
      exchange.end()
    }
    try await withClient {
      $0.retry.maximumCount = 2
      $0.retry.delay = .milliseconds(1)
    } _: { client in
      let (body, response) = try await client.stream(for: HTTP.Request(server.url()))
      #expect(response.status == 200)
      isTaken.open()
      do {
        for try await chunk in body { Issue.record("\(String(decoding: chunk, as: UTF8.self))") }
        Issue.record("the body has an end")
      } catch let error as HTTP.Error {
        #expect(error.code == .connectionLost)
      }
    }
    #expect(asked.value == 1)
  }

  @Test("cancelling a task cancels its request immediately")
  func cancelledTask() async throws {
    let server = try LyingServer { _ in }
    try await withClient { client in
      let request = HTTP.Request(server.url())
      let task = Task { await end(client, request) }
      await eventually { server.requests.value.count == 1 }
      task.cancel()
      #expect(await task.value == "cancelled")
      await eventually { server.ended.value == 1 }
      let late = Task { () -> String in
        withUnsafeCurrentTask { $0?.cancel() }
        return await end(client, request)
      }
      #expect(await late.value == "cancelled")
    }
  }

  @Test("a download is complete or absent, and resumes where it was cut")
  func downloads() async throws {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { RunLoopTestPath.remove(path) }
    let body = pattern(100_000)
    let server = try LyingServer { exchange in
      switch (exchange.path, exchange.field("Range")) {
      case ("/missing", _): exchange.answer("no such file", status: "404 None")
      case (_, nil):
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
        exchange.send(Array(body[..<60_000]))
        exchange.end()
      case (_, let range?):
        #expect(range == "bytes=60000-")
        exchange.answer(
          Array(body[60_000...]), status: "206 Part", ["Content-Range: bytes 60000-99999/100000", "ETag: \"v1\""])
      }
    }
    try await withClient { client in
      let request = HTTP.Request(server.url("/file"))
      await #expect(throws: HTTP.Error.self) { try await client.download(request, to: path) }
      #expect(RunLoopTestPath.read(path) == nil)
      #expect(RunLoopTestPath.read(path + ".part") == Array(body[..<60_000]))
      _ = try await client.download(request, to: path)
      #expect(RunLoopTestPath.read(path) == body)
      #expect(RunLoopTestPath.read(path + ".part") == nil)
      #expect(RunLoopTestPath.read(path + ".part.json") == nil)
      let response = try await client.download(HTTP.Request(server.url("/missing")), to: path)
      #expect(response.status == 404)
      #expect(RunLoopTestPath.read(path) == body)
      #expect(RunLoopTestPath.read(path + ".part") == nil)
      await #expect(throws: HTTP.Error.self) { try await client.download(request, to: "/nonexistent/folder/file") }
    }
  }

  @Test("a partial file of another URL, or longer than the whole, is not resumed")
  func foreignParts() async throws {
    let path = "/tmp/RunLoopHTTPTests.\(RunLoopTestPath.next())"
    defer { RunLoopTestPath.remove(path) }
    let server = try LyingServer { exchange in
      #expect(exchange.field("Range") == nil)
      exchange.answer("whole", "ETag: \"v1\"")
    }
    try await withClient { client in
      for (url, total) in [("http://other/", 9), (server.url(), 2)] as [(String, Int64)] {
        RunLoopTestPath.write(Array("part".utf8), to: path + ".part")
        let note = PartNote(url: PartNote.name(of: url), validator: "\"v1\"", total: total)
        RunLoopTestPath.write(Array(note.text.utf8), to: path + ".part.json")
        _ = try await client.download(HTTP.Request(server.url()), to: path)
        #expect(RunLoopTestPath.read(path) == Array("whole".utf8))
      }
    }
  }

  // "hello" in gzip, and two members of it.
  private static let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
  ]

  @Test("encoded bodies are decoded, and truncated or mislabelled ones are errors")
  func decoding() async throws {
    let gzip = Self.gzip
    let cases: [(String, [UInt8], String)] = [
      ("gzip", gzip, "200 hello"), ("gzip", gzip + gzip, "200 hellohello"), ("gzip", gzip + [0, 0, 0], "200 hello"),
      ("gzip", Array(gzip.dropLast()), "cannotDecode"), ("gzip", Array(gzip.prefix(12)), "cannotDecode"),
      ("gzip", gzip.dropLast(8) + [1, 2, 3, 4, 5, 0, 0, 0], "cannotDecode"), ("gzip", gzip + [1], "200 hello"),
      ("gzip", [], "200 "), ("gzip", Array("plain".utf8), "cannotDecode"), ("x-gzip, identity", gzip, "200 hello"),
      ("deflate", [203, 72, 205, 201, 201, 7, 0], "200 hello"),
      ("deflate", [120, 156, 203, 72, 205, 201, 201, 7, 0, 6, 44, 2, 21], "200 hello"),
      ("deflate", [120, 156, 203, 72, 205], "cannotDecode"), ("br", gzip, "cannotDecode"),
      ("gzip, gzip, gzip, gzip, gzip", gzip, "cannotDecode"),
    ]
    for (coding, bytes, expected) in cases {
      let server = try LyingServer { $0.answer(bytes, ["Content-Encoding: \(coding)"]) }
      try await withClient { client in
        #expect(await end(client, HTTP.Request(server.url())) == expected, "\(coding) \(bytes.count)")
      }
    }
  }

  @Test("bytes that arrive one by one are decoded like bytes that arrive together")
  func slowDecoding() throws {
    for count in 1...Self.gzip.count {
      let decoder = Decoder([.gzip])
      var text: [UInt8] = []
      for byte in Self.gzip.prefix(count) {
        withUnsafeBytes(of: byte) { decoder.feed($0) }
        while let bytes = try decoder.next() { text += bytes }
      }
      #expect(decoder.isComplete == (count == Self.gzip.count))
      if decoder.isComplete { #expect(text == Array("hello".utf8)) }
    }
  }

  @Test("a client that was stopped immediately ends running requests and accepts no more")
  func stopping() async throws {
    let server = try LyingServer { _ in }
    let client = patientClient()
    let request = HTTP.Request(server.url())
    let tasks = (0..<5).map { _ in Task { await end(client, request) } }
    await eventually { server.requests.value.count == 5 }
    client.stop(.immediately)
    let report = await client.finished()
    for task in tasks { #expect(await task.value == "stopped") }
    #expect(await end(client, request) == "stopped")
    #expect(client.state == .finished)
    #expect(report.stoppedCount == 5)
    await eventually { server.ended.value == 5 }
  }

  @Test("a client that is stopped after its work completes it, except for requests that wait for the program")
  func draining() async throws {
    let release = Latch()
    let server = try LyingServer { exchange in
      if exchange.path == "/late" {
        release.wait()
        exchange.answer("late")
      } else {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
      }
    }
    let client = patientClient()
    let paused = client.operation(HTTP.Request(server.url()), on: .main)
    paused.start()
    await eventually { paused.progress.received == 5 }
    paused.pause()
    await eventually { paused.state == .paused }
    let request = HTTP.Request(server.url("/late"))
    let late = Task { await end(client, request) }
    await eventually { server.requests.value.count == 2 || server.accepted.value == 2 }
    client.stop()
    await eventually { paused.state == .finished }
    release.open()
    #expect(await late.value == "200 late")
    let report = await client.finished()
    #expect(report.completedCount == 1)
    #expect(report.stoppedCount == 1)
  }

  @Test("a request that is paused and resumed at once completes, even while its client drains")
  func pausingWhileDraining() async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Range") == nil {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"v1\"\r\n\r\nhello")
      } else {
        exchange.answer("world", status: "206 Part", "Content-Range: bytes 5-9/10")
      }
    }
    let client = patientClient()
    let operation = client.operation(HTTP.Request(server.url()), on: .main)
    operation.start()
    await eventually { operation.progress.received == 5 }
    client.stop()
    client.core.post {
      operation.pause()
      operation.resume()
    }
    let report = await client.finished()
    #expect(report.completedCount == 1)
    #expect(operation.progress.received == 10)
  }

  /// A receiver that stores a body only when the test allows it.
  private final class PatientReceiver: Receiver, Sendable {
    let putAway = Box<(@Sendable (HTTP.Error?) -> Void)?>(nil)
    let end = Box("")

    var canRestart: Bool { false }
    var defaultLimit: Int64? { nil }
    func begin(_ response: HTTP.Response, at offset: Int64) {}
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
    func close(_ done: @escaping @Sendable (HTTP.Error?) -> Void) -> Bool {
      putAway.value = done
      return false
    }
    func finish(_ result: Result<HTTP.Response, HTTP.Error>) {
      switch result {
      case .success(let response): end.value = "\(response.status.code)"
      case .failure(let error): end.value = error.code.name
      }
    }
  }

  @Test("a body that is being stored when a client is stopped after its work is stored", arguments: [true, false])
  func puttingAway(_ isGraceful: Bool) async throws {
    let server = try LyingServer { $0.answer("hello") }
    let client = patientClient()
    let receiver = PatientReceiver()
    #expect(client.core.begin(Transfer(client.core, HTTP.Request(server.url()), receiver)) == nil)
    await eventually { receiver.putAway.value != nil }
    client.stop(isGraceful ? .afterPendingWork : .immediately)
    receiver.putAway.value?(nil)
    _ = await client.finished()
    #expect(receiver.end.value == (isGraceful ? "200" : "stopped"))
  }

  @Test("a client on a given loop has no thread, and ends its requests when the loop's thread ends")
  func givenLoop() async throws {
    let server = try LyingServer { exchange in if exchange.path == "/ok" { exchange.answer("ok") } }
    let thread = try ResidentThread(name: "given")
    let client = HTTP.Client(.init(), on: thread.runLoop)
    #expect(await end(client, HTTP.Request(server.url("/ok"))) == "200 ok")
    let request = HTTP.Request(server.url("/silent"))
    let task = Task { await end(client, request) }
    await eventually { server.requests.value.count == 2 }
    thread.stop()
    #expect(await task.value == "stopped")
    _ = await thread.finished()
    #expect(await end(client, request) == "stopped")
    await eventually { server.ended.value == server.accepted.value }
  }

  @Test("a client that never made a request is stopped immediately")
  func unused() async throws {
    let client = patientClient()
    #expect(client.stop() == .finished)
    #expect(await client.finished() == HTTP.StopReport())
  }

  @Test("a forked child gets a typed error from its parent's client", .disabled(if: isSanitizedForThreads))
  func forked() async {
    // In its own process: a fork amid other tests' threads could leave their locks held in the child.
    await #expect(processExitsWith: .success) {
      let server = try LyingServer { $0.answer("ok") }
      try await withClient { client in
        #expect(await end(client, HTTP.Request(server.url())) == "200 ok")
        let url = server.url()
        let ending = await elsewhere {
          inForkedChild {
            let code = Box("")
            let operation = client.operation(HTTP.Request(url))
            operation.onCompletion(on: .immediately) { result in
              if case .failure(let error) = result { code.value = error.code.name }
            }
            operation.start()
            return code.value == "stopped" && client.stop() == .finished ? 0 : 1
          }
        }
        #expect(ending == .exited(0))
        #expect(await end(client, HTTP.Request(url)) == "200 ok")
        try Task.checkCancellation()
      }
    }
  }

  @Test("the shared client cannot be stopped")
  func shared() { #expect(HTTP.Client.shared.stop(.immediately) == .running) }
}

/// Creates a client that tolerates other tests occupying the threads of the task pool.
private func patientClient() -> HTTP.Client {
  var configuration = HTTP.Configuration()
  configuration.idleTimeout = nil
  configuration.connectTimeout = .seconds(3600)
  return HTTP.Client(configuration)
}

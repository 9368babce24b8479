// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("AFNetworking's operations")
struct AFOperationTests {
  /// Starts a server that sends half of a body, and the rest in response to a range request.
  private static func halfServer() throws -> LyingServer {
    try LyingServer { exchange in
      let body = pattern(200_000)
      if let range = exchange.field("Range").flatMap({ Int($0.dropFirst(6).dropLast()) }) {
        return exchange.answer(
          Array(body[range...]), status: "206 Part",
          ["ETag: \"1\"", "Content-Range: bytes \(range)-\(body.count - 1)/\(body.count)"])
      }
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"1\"\r\n\r\n")
      exchange.send(Array(body[..<100_000]))
    }
  }

  /// Waits for an operation's end.
  private func end(_ operation: AFURLConnectionOperation) async {
    await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
  }

  @Test("an operation starts on the thread named AFNetworking, and calls its delegate there")
  func thread() async throws {
    let server = try LyingServer { $0.answer("hello") }
    final class Noting: AFURLConnectionOperation, @unchecked Sendable {
      // Sendable: the box has a lock.
      let names = Box<Set<String>>([])

      override func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
        names.update { _ = $0.insert(Thread.current.name ?? "none") }
        super.connection(connection, didReceive: response)
      }

      override func connectionDidFinishLoading(_ connection: NSURLConnection) {
        names.update { _ = $0.insert(Thread.current.name ?? "none") }
        super.connectionDidFinishLoading(connection)
      }
    }
    let operation = Noting(request: server.request())
    operation.start()
    await end(operation)
    #expect(operation.names.value == ["AFNetworking"])
    #expect(operation.responseString == "hello")
    #expect(operation.error == nil && operation.isFinished && !operation.isExecuting)
    #expect(Noting.networkRequestThread?.name == "AFNetworking")
  }

  @Test("an operation cancelled before its start finishes once when started, and sends no request")
  func cancelledBefore() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let operation = AFHTTPRequestOperation(request: server.request())
    operation.cancel()
    #expect(operation.isCancelled && !operation.isFinished)
    let ends = Counter()
    operation.whenFinished { ends.add() }
    operation.start()
    await end(operation)
    operation.start()
    operation.cancel()
    #expect((operation.error as? URLError)?.code == .cancelled)
    #expect(ends.value == 1 && server.requests.value == [])
  }

  @Test("an operation that is paused and then cancelled finishes in its queue", arguments: [true, false])
  func pausedAndCancelled(isQueuedFirst: Bool) async throws {
    let operation = AFHTTPRequestOperation(request: URLRequest(url: URL(fileURLWithPath: "/")))
    let queue = OperationQueue()
    queue.isSuspended = true
    if isQueuedFirst { queue.addOperation(operation) }
    operation.pause()
    if !isQueuedFirst { queue.addOperation(operation) }
    queue.isSuspended = false
    #expect(!operation.isReady)
    operation.cancel()
    await eventually { operation.isFinished }
    #expect((operation.error as? URLError)?.code == .cancelled && !operation.isPaused())
  }

  @Test("an operation that is never started is released, and leaves its completion group")
  func unstarted() {
    let group = DispatchGroup()
    weak var released: AFHTTPRequestOperation?
    do {
      let operation = AFHTTPRequestOperation(request: URLRequest(url: URL(fileURLWithPath: "/")))
      released = operation
      operation.completionGroup = group
      operation.setCompletionBlockWithSuccess({ _, _ in }, failure: { _, _ in })
    }
    #expect(released == nil)
    #expect(group.wait(timeout: .now()) == .success)
  }

  @Test("an operation of a forked child ends with an error", .disabled(if: isSanitizedForThreads))
  func forked() async {
    // In its own process: a fork amid other tests' threads could leave their locks held in the child.
    await #expect(processExitsWith: .success) {
      let server = try LyingServer { $0.answer("hello") }
      let request = server.request()
      let operation = AFHTTPRequestOperation(request: request)
      operation.start()
      await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
      #expect(operation.responseString == "hello")
      let ending = await elsewhere {
        inForkedChild {
          let operation = AFURLConnectionOperation(request: request)
          operation.start()
          return operation.isFinished && (operation.error as? URLError)?.code == .cannotLoadFromNetwork ? 0 : 1
        }
      }
      #expect(ending == .exited(0))
    }
  }

  @Test("an operation cancelled in flight finishes with the error, and the server sees it disconnect")
  func cancelledInFlight() async throws {
    let server = try LyingServer { _ in }
    let operation = AFHTTPRequestOperation(request: server.request())
    operation.start()
    await eventually { server.requests.value.count == 1 }
    operation.cancel()
    await end(operation)
    #expect((operation.error as? URLError)?.code == .cancelled)
    await eventually { server.ended.value == 1 }
  }

  @Test("a paused operation resumes with the same version of the body")
  func pausing() async throws {
    let server = try Self.halfServer()
    let operation = AFHTTPRequestOperation(request: server.request())
    let received = Box<Int64>(0)
    operation.setDownloadProgressBlock { _, total, _ in received.value = total }
    operation.start()
    await eventually { received.value == 100_000 }
    operation.pause()
    #expect(operation.isPaused() && !operation.isExecuting && !operation.isFinished)
    await eventually { server.ended.value == 1 }
    operation.resume()
    await end(operation)
    #expect(operation.responseData == Data(pattern(200_000)))
    #expect(received.value == 200_000)
  }

  @Test("a body without a version starts from the beginning, and is not appended")
  func restarting() async throws {
    let asked = Counter()
    let whole = try LyingServer { exchange in
      let body = pattern(200_000)
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
      exchange.send(asked.add() == 1 ? Array(body[..<100_000]) : body)
    }
    let operation = AFHTTPRequestOperation(request: whole.request())
    let received = Box<Int64>(0)
    operation.setDownloadProgressBlock { _, total, _ in received.value = total }
    operation.start()
    await eventually { received.value == 100_000 }
    operation.pause()
    operation.resume()
    await end(operation)
    #expect(operation.responseData == Data(pattern(200_000)))
  }

  @Test(
    "a paused operation that is cancelled finishes, and one paused before its start is started by resuming")
  func pausedEnds() async throws {
    let server = try LyingServer { if $0.path == "/hello" { $0.answer("hello") } }
    let operation = AFHTTPRequestOperation(request: server.request("/silent"))
    operation.start()
    await eventually { server.requests.value.count == 1 }
    operation.pause()
    operation.cancel()
    await end(operation)
    #expect((operation.error as? URLError)?.code == .cancelled)
    let late = AFHTTPRequestOperation(request: server.request("/hello"))
    late.pause()
    #expect(!late.isReady)
    late.start()
    #expect(!late.isExecuting)
    late.resume()
    await end(late)
    #expect(late.responseString == "hello")
  }

  @Test("a queue limits concurrency, respects dependencies, and calls the completion blocks")
  func queues() async throws {
    let (inside, most) = (Counter(), Box(0))
    let server = try LyingServer { exchange in
      most.update { $0 = max($0, inside.add()) }
      inside.add(-1)
      exchange.answer(exchange.path)
    }
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let operations = (0..<5).map { AFHTTPRequestOperation(request: server.request("/\($0)")) }
    // In reverse order.
    for (operation, next) in zip(operations, operations.dropFirst()) { operation.addDependency(next) }
    let blocks = Counter()
    for operation in operations { operation.completionBlock = { blocks.add() } }
    let cancelled = AFHTTPRequestOperation(request: server.request("/never"))
    cancelled.cancel()
    for operation in operations + [cancelled] { queue.addOperation(operation) }
    for operation in operations + [cancelled] { await end(operation) }
    #expect(server.requests.value == (0..<5).reversed().map { "GET /\($0)" })
    #expect(most.value == 1)
    await eventually { blocks.value == 5 && queue.operationCount == 0 }
    #expect(operations.map(\.responseString) == (0..<5).map { "/\($0)" })
  }

  @Test("completion blocks get the serializer's result or the error, once")
  func completions() async throws {
    let server = try LyingServer { exchange in
      switch exchange.path {
      case "/json": exchange.answer("{\"key\": [1, 2]}", "Content-Type: application/json")
      case "/text": exchange.answer("text", "Content-Type: text/plain")
      default: exchange.answer("{}", status: "404 No", "Content-Type: application/json")
      }
    }
    let manager = AFHTTPRequestOperationManager(baseURL: URL(string: server.url("/")))
    manager.completionQueue = DispatchQueue(label: "completions")
    func get(_ path: String) async -> String {
      await withCheckedContinuation { continuation in
        manager.get(
          path, parameters: nil,
          success: { operation, object in
            continuation.resume(
              returning: "\(operation.httpResponse?.statusCode ?? 0) \(object as? [String: [Int]] ?? [:])")
          },
          failure: { operation, error in
            let error = error as NSError
            continuation.resume(returning: "\(operation != nil) \(error.domain == NSURLErrorDomain) \(error.code)")
          })
      }
    }
    #expect(await get("json") == "200 [\"key\": [1, 2]]")
    #expect(await get("text") == "true false -1016")
    #expect(await get("missing") == "true false -1011")
    let port = RefusingPort()
    defer { withExtendedLifetime(port) {} }
    #expect(await get("http://127.0.0.1:\(port.number)/gone") == "true true -1004")
  }

  @Test("a batch reports each end and the end of all")
  func batches() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let operations = (0..<3).map { _ in AFHTTPRequestOperation(request: server.request()) }
    operations[1].cancel()
    let all = AFURLConnectionOperation.batch(ofRequestOperations: operations)
    #expect(all.count == 4)
    let queue = OperationQueue()
    for operation in all { queue.addOperation(operation) }
    await eventually { all[3].isFinished }
    #expect(operations.map(\.isFinished) == [true, true, true])
    #expect(operations.map { $0.error == nil } == [true, false, true])
  }

  @Test("the end of a batch is reported after the last of its operations, however soon the queue ends")
  func batchOrder() async throws {
    let server = try LyingServer { $0.answer("hello") }
    let operation = AFHTTPRequestOperation(request: server.request())
    let (log, over) = (Entries(), Latch())
    let all = AFURLConnectionOperation.batch(ofRequestOperations: [operation]) { count, total in
      log.write("\(count) of \(total)")
    } completionBlock: { _ in
      log.write("all")
      over.open()
    }
    // Between an operation's end for its queue and its report.
    let observer = NotificationCenter.default.addObserver(
      forName: .AFNetworkingOperationDidFinish, object: operation, queue: nil
    ) { _ in waitUntil { all[1].isFinished } }
    let queue = OperationQueue()
    for operation in all { queue.addOperation(operation) }
    await eventually { over.isOpen }
    NotificationCenter.default.removeObserver(observer)
    #expect(log.text == "1 of 1 all")
  }

  @Test("a credential responds to a challenge once, and a block takes precedence")
  func credentials() async throws {
    let server = try LyingServer { exchange in
      if exchange.field("Authorization") == "Basic " + Data("a:b".utf8).base64EncodedString() {
        exchange.answer("welcome")
      } else {
        exchange.answer("", status: "401 No", "WWW-Authenticate: Basic realm=\"r\"")
      }
    }
    let right = AFHTTPRequestOperation(request: server.request())
    right.credential = URLCredential(user: "a", password: "b", persistence: .none)
    right.start()
    await end(right)
    #expect(right.responseString == "welcome")
    let wrong = AFHTTPRequestOperation(request: server.request())
    wrong.credential = URLCredential(user: "a", password: "c", persistence: .none)
    wrong.start()
    await end(wrong)
    #expect(wrong.httpResponse?.statusCode == 401 && (wrong.error as? NSError)?.code == -1011)
    let blocked = AFHTTPRequestOperation(request: server.request())
    blocked.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in challenge.sender?.cancel(challenge) }
    blocked.start()
    await end(blocked)
    #expect((blocked.error as? URLError)?.code == .userCancelledAuthentication)
  }

  @Test("a credential is used for the request's own server only, and not after a redirect to another")
  func redirectedCredential() async throws {
    let seen = Box<[String]>([])
    let other = try LyingServer { exchange in
      seen.update { $0.append(exchange.field("Authorization") ?? "none") }
      exchange.answer("who?", status: "401 No", "WWW-Authenticate: Basic realm=\"r\"")
    }
    let target = other.url()
    let server = try LyingServer { exchange in
      switch (exchange.path, exchange.field("Authorization")) {
      case ("/own", _): exchange.answer("", status: "302 Found", "Location: /guarded")
      case ("/guarded", nil): exchange.answer("", status: "401 No", "WWW-Authenticate: Basic realm=\"r\"")
      case ("/guarded", _): exchange.answer("welcome")
      default: exchange.answer("", status: "302 Found", "Location: \(target)")
      }
    }
    let operations = ["/away", "/own"].map { AFHTTPRequestOperation(request: server.request($0)) }
    for operation in operations {
      operation.credential = URLCredential(user: "a", password: "b", persistence: .none)
      operation.start()
      await end(operation)
    }
    #expect(operations[0].httpResponse?.statusCode == 401)
    #expect(seen.value == ["none"])
    #expect(operations[1].responseString == "welcome")
  }

  @Test("a serializer is called once, and may read any property of its operation")
  func askingSerializer() async throws {
    final class Asking: AFHTTPResponseSerializer, @unchecked Sendable {
      // Sendable: set before the start.
      weak var operation: AFHTTPRequestOperation?
      let calls = Counter()

      override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
        calls.add()
        #expect(operation?.responseObject == nil && operation?.error == nil)
        return operation?.responseString
      }
    }
    let server = try LyingServer { $0.answer("hello") }
    let operation = AFHTTPRequestOperation(request: server.request())
    let serializer = Asking()
    serializer.operation = operation
    operation.responseSerializer = serializer
    operation.start()
    await end(operation)
    let texts = await withTaskGroup(of: String?.self) { group in
      for _ in 0..<8 { group.addTask { await elsewhere { operation.responseObject as? String } } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(texts == Array(repeating: "hello", count: 8))
    #expect(serializer.calls.value == 1)
  }

  @Test("a body can be written to a stream, and a redirect can be rejected")
  func streams() async throws {
    let server = try LyingServer { exchange in
      if exchange.path == "/moved" {
        exchange.answer("moved", status: "302 Found", "Location: /")
      } else {
        exchange.answer(pattern(300_000))
      }
    }
    let operation = AFHTTPRequestOperation(request: server.request())
    let stream = OutputStream.toMemory()
    operation.outputStream = stream
    operation.start()
    await end(operation)
    let data = stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data
    #expect(data == Data(pattern(300_000)) && operation.responseData == nil)
    let moved = AFURLConnectionOperation(request: server.request("/moved"))
    moved.setRedirectResponseBlock { _, _, _ in nil }
    moved.start()
    await end(moved)
    #expect(moved.responseString == "moved")
  }

  @Test("operations are released after their end, whatever their result")
  func release() async throws {
    let server = try LyingServer { if $0.path == "/" { $0.answer("hello") } }
    weak var finished: AFHTTPRequestOperation?
    weak var cancelled: AFHTTPRequestOperation?
    weak var unused: AFHTTPRequestOperation?
    do {
      let operations = [server.request(), server.request("/silent"), server.request()].map(AFHTTPRequestOperation.init)
      (finished, cancelled, unused) = (operations[0], operations[1], operations[2])
      operations[0].start()
      operations[1].start()
      await eventually { server.requests.value.count == 2 }
      operations[1].cancel()
      for operation in operations.prefix(2) { await end(operation) }
    }
    let references = (Reference(finished), Reference(cancelled), Reference(unused))
    (finished, cancelled, unused) = (nil, nil, nil)
    await eventually { references.0.isGone && references.1.isGone && references.2.isGone }
  }
}

/// Checks whether an object has been released.
private final class Reference: @unchecked Sendable {
  // Sendable: weak references are read atomically.
  private weak var object: AnyObject?
  init(_ object: AnyObject?) { self.object = object }
  var isGone: Bool { object == nil }
}

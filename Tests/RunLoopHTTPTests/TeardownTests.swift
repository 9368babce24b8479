// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Clients that are stopped, released and cancelled at any moment.
@Suite(.timeLimit(.minutes(60))) struct TeardownTests {
  /// The number of clients, with twenty transfers each: `TEARDOWN_CLIENTS` from the environment, by default 400.
  static var count: Int {
    getenv("TEARDOWN_CLIENTS").flatMap { Int(String(cString: $0)) } ?? (isSanitizedForThreads ? 200 : 400)
  }

  @Test("transfers that are released, stopped and cancelled at random all end once, and leave nothing behind")
  func random() async {
    await #expect(processExitsWith: .success) {
      // Fails the test if a transfer never ends.
      alarm(900)
      let server = try makeServer()
      // Opens everything that stays open.
      _ = await turn(server, SplitMix64(seed: 0), { _ in })
      await eventually { server.isSettled }
      let census = DescriptorCensus()
      let threads = threadCount()
      var clients: [WeakBox<ClientCore>] = []
      for number in 1...TeardownTests.count {
        let problem = await turn(server, SplitMix64(seed: UInt64(number))) { clients.append(WeakBox($0)) }
        #expect(problem == nil, "turn \(number)")
        if problem != nil { break }
      }
      await eventually { server.isSettled && DescriptorCensus().isWithin(census) }
      await eventually { threadCount() <= threads + 8 }
      let all = clients
      await eventually { all.allSatisfy { $0.object == nil } }
    }
  }
}

/// The number of this process's threads, without those of the task pool and of Dispatch, whose number varies.
private func threadCount() -> Int {
  guard let directory = opendir("/proc/self/task") else { return -1 }
  defer { closedir(directory) }
  var count = 0
  while readdir(directory) != nil { count += 1 }
  return count - 2
}

private func makeServer() throws -> LyingServer {
  try LyingServer { exchange in
    switch exchange.path {
    case "/silent": break
    case "/half": exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1\"\r\n\r\nhello")
    case "/close": exchange.close()
    case "/redirect": exchange.answer("", status: "302 Found", "Location: /ok")
    case "/busy": exchange.answer("", status: "503 Busy")
    case "/who": exchange.answer("", status: "401 Who", "WWW-Authenticate: Basic realm=\"r\"")
    case "/garbage": exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    default: exchange.answer(pattern(50_000))
    }
  }
}

private let paths = ["/silent", "/half", "/close", "/redirect", "/busy", "/who", "/garbage", "/ok", "/ok", "/ok"]

/// Runs one client with twenty transfers, and returns a failure, if any.
private func turn(
  _ server: LyingServer, _ seeded: SplitMix64, _ note: (ClientCore) -> Void
) async -> String? {
  var random = seeded
  var configuration = HTTP.Configuration()
  configuration.retry.maximumCount = Int.random(in: 0...2, using: &random)
  configuration.retry.delay = .milliseconds(1)
  configuration.credential = HTTP.Credential(user: "a", password: "b")
  configuration.connectionsPerHost = Int.random(in: 1...20, using: &random)
  var client: HTTP.Client? = HTTP.Client(configuration)
  let core = client?.core
  if let core { note(core) }
  let ends = Counter()
  var tasks: [Task<Void, Never>] = []
  var operations: [HTTP.Operation] = []
  for _ in 0..<20 {
    guard let client else { break }
    var request = HTTP.Request(server.url(paths[Int.random(in: 0..<paths.count, using: &random)]))
    if Int.random(in: 0..<5, using: &random) == 0 {
      request.method = .put
      let count = Int.random(in: 0...200_000, using: &random)
      request.body = Bool.random(using: &random) ? .bytes(pattern(count)) : .stream { Chunks(count: count) }
    }
    switch Int.random(in: 0..<8, using: &random) {
    case 0:
      let task = Task { [request] in
        _ = try? await client.data(for: request)
        ends.add()
      }
      if Bool.random(using: &random) { task.cancel() }
      tasks.append(task)
    case 1:
      let takes = Int.random(in: 0...2, using: &random)
      tasks.append(
        Task { [request] in
          if let (body, _) = try? await client.stream(for: request), takes > 0 {
            var chunks = body.makeAsyncIterator()
            for _ in 0..<takes { _ = try? await chunks.next() }
          }
          ends.add()
        })
    default:
      let operation = client.operation(request, output: Bool.random(using: &random) ? .memory : .discard, on: .main)
      operation.onCompletion(on: .immediately) { _ in ends.add() }
      operations.append(operation)
      operation.start()
    }
  }
  for _ in 0..<Int.random(in: 0...30, using: &random) {
    guard let operation = operations.randomElement(using: &random) else { break }
    switch Int.random(in: 0..<7, using: &random) {
    case 0: operation.cancel()
    case 1: operation.pause()
    case 2: operation.resume()
    case 3: operation.pauseReading()
    case 4: operation.resumeReading()
    case 5: await Task.yield()
    default: usleep(UInt32.random(in: 0...200, using: &random))
    }
  }
  // Paused transfers, and those that wait for a silent server, would keep a released client alive.
  if Int.random(in: 0..<3, using: &random) == 0 {
    client?.stop(.afterPendingWork)
    usleep(UInt32.random(in: 0...2000, using: &random))
  }
  client?.stop(.immediately)
  if Bool.random(using: &random) { client = nil }
  // A task may use a client that has finished; its error is in the report, too.
  for task in tasks { await task.value }
  guard let report = await core?.finished() else { return "there is no client" }
  guard ends.value == 20 else { return "\(ends.value) ends, \(report)" }
  let told =
    report.completedCount + report.failedCount + report.cancelledCount + report.stoppedCount + report.rejectedCount
  return told == 20 ? nil : "\(report)"
}

/// Bytes in chunks of a thousand.
private struct Chunks: AsyncSequence, AsyncIteratorProtocol, Sendable {
  var count: Int

  mutating func next() async -> [UInt8]? {
    guard count > 0 else { return nil }
    let size = Swift.min(count, 1000)
    count -= size
    return [UInt8](repeating: 1, count: size)
  }

  func makeAsyncIterator() -> Chunks { self }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

/// Connections and operations that are started, cancelled, paused and released at any moment, on loops that end or
/// run elsewhere.
@Suite("Connections and operations that end at any moment", .timeLimit(.minutes(60)))
struct ConnectionTeardownTests {
  /// The number of turns of ten requests each: a fifth of `TEARDOWN_CLIENTS` in the environment, by default 80.
  static var turns: Int {
    let told = ProcessInfo.processInfo.environment["TEARDOWN_CLIENTS"].flatMap { Int($0) }
    return told.map { max(1, $0 / 5) } ?? (isSanitizedForThreads ? 40 : 80)
  }

  @Test("connections end once, cancelled ones call nothing, and nothing is left behind")
  func connections() async {
    await #expect(processExitsWith: .success) {
      alarm(900)
      try await ConnectionTeardownTests.storm { server, random in await ConnectionTurn.run(server, random) }
    }
  }

  @Test("each operation finishes once, whatever was done to it, and nothing is left behind")
  func operations() async {
    await #expect(processExitsWith: .success) {
      alarm(900)
      try await ConnectionTeardownTests.storm { server, random in await OperationTurn.run(server, random) }
    }
  }

  private static func storm(_ turn: (LyingServer, SplitMix64) async -> String?) async throws {
    let server = try makeServer()
    // Opens what stays open: the threads of the loader and of AFNetworking, and libcurl's resources.
    for number in 0..<3 { #expect(await turn(server, SplitMix64(seed: UInt64(number))) == nil) }
    await eventually { server.isSettled }
    let (census, threads) = (DescriptorCensus(), System.threadCount)
    for number in 1...turns {
      let problem = await turn(server, SplitMix64(seed: UInt64(1000 + number)))
      #expect(problem == nil, "turn \(number)")
      if problem != nil { break }
    }
    // A loop without descriptors may keep its epoll set or close it. The loader's stays.
    let set = ["anon_inode:[eventpoll]": 1, "anon_inode:[eventfd]": 1]
    await eventually { server.isSettled && DescriptorCensus().isWithin(census, with: set) }
    await eventually { System.threadCount <= threads + 8 }
  }

  /// Starts a server that keeps no connection, so that all of them end.
  private static func makeServer() throws -> LyingServer {
    try LyingServer { exchange in
      switch exchange.path {
      case "/silent": break
      case "/half": exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1\"\r\n\r\nhello")
      case "/close": exchange.close()
      case "/redirect": exchange.answer("", status: "302 Found", "Location: /ok", "Connection: close")
      case "/who": exchange.answer("", status: "401 Who", "WWW-Authenticate: Basic realm=\"r\"", "Connection: close")
      case "/garbage": exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
      case "/cookie": exchange.answer("", "Set-Cookie: a=b", "Connection: close")
      default: exchange.answer(pattern(50_000), ["Connection: close"])
      }
    }
  }

  /// Returns a random request, and whether it ends by itself.
  fileprivate static func request(_ server: LyingServer, _ random: inout SplitMix64) -> (URLRequest, ends: Bool) {
    let paths = ["/silent", "/half", "/close", "/redirect", "/who", "/garbage", "/cookie", "/ok", "/ok", "/ok"]
    let path = paths[Int.random(in: 0..<paths.count, using: &random)]
    var request = server.request(path)
    if Int.random(in: 0..<4, using: &random) == 0 {
      request.httpMethod = "PUT"
      let body = Data(pattern(Int.random(in: 0...200_000, using: &random)))
      if Bool.random(using: &random) {
        request.httpBody = body
      } else {
        request.httpBodyStream = InputStream(data: body)
      }
    }
    return (request, !["/silent", "/half"].contains(path))
  }
}

/// A delegate that counts the ends of its connection, and cancels it on request.
private final class EndCounter: NSURLConnectionDataDelegate, @unchecked Sendable {
  // Sendable: its variables are guarded by locks, or set before the start.
  let ends = Counter()
  /// The number of calls after the connection was cancelled by the thread that is called.
  let late = Counter()
  var cancelsWithin = false
  var follows = true
  private let (isCancelled, isCancelledWithin) = (Box(false), Box(false))

  var wasCancelled: Bool { isCancelled.value }
  /// Whether there is nothing left to wait for.
  var isOver: Bool { wasCancelled || ends.value > 0 }

  /// Cancels the connection, after which only calls in progress on another thread may still be made.
  func cancel(_ connection: NSURLConnection) {
    isCancelled.value = true
    connection.cancel()
  }

  private func noteCall() { if isCancelledWithin.value { late.add() } }

  func connection(
    _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
  ) -> URLRequest? {
    noteCall()
    return follows ? request : nil
  }

  func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
    noteCall()
    guard cancelsWithin else { return }
    cancel(connection)
    isCancelledWithin.value = true
  }

  func connection(_ connection: NSURLConnection, didReceive data: Data) { noteCall() }

  func connectionDidFinishLoading(_ connection: NSURLConnection) {
    noteCall()
    ends.add()
  }

  func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
    noteCall()
    ends.add()
  }
}

/// A connection that was started.
private struct Begun: Sendable {
  let delegate: EndCounter
  /// Nil if the connection is kept alive only by itself.
  let connection: NSURLConnection?
  /// Whether the connection ends by itself.
  let ends: Bool

  func cancelIfEndless() { if !ends, let connection { delegate.cancel(connection) } }
}

/// Runs ten connections on a loop.
private enum ConnectionTurn {
  /// The fate of the loop that the connections are scheduled on.
  private enum Life: CaseIterable { case runs, ends, runsElsewhere, hasQueue }

  /// Runs a turn, and returns a failure, if any.
  static func run(_ server: LyingServer, _ seeded: SplitMix64) async -> String? {
    let made = Box<[Begun]>([])
    let life = await elsewhere {
      var random = seeded
      let life = Life.allCases[Int.random(in: 0..<4, using: &random)]
      begin(server, life, made, &random)
      // Its thread ends here, and the loader makes the calls.
      if life == .ends { return life }
      if life == .runsElsewhere {
        let source = RunLoop.Source {}
        RunLoop.current.add(source, forMode: .tracking)
        RunLoop.current.run(mode: .tracking, for: .milliseconds(Int.random(in: 0...3, using: &random)))
        source.invalidate()
      }
      if life != .hasQueue { runUntilEnded(made, patience: Int.random(in: 0...40, using: &random)) }
      return life
    }
    let all = made.value
    // Cancels those that would never end by themselves, and waits for the others.
    for one in all { one.cancelIfEndless() }
    await eventually { all.allSatisfy(\.delegate.isOver) }
    for (index, one) in all.enumerated() {
      let isRight = one.delegate.wasCancelled ? one.delegate.ends.value <= 1 : one.delegate.ends.value == 1
      guard isRight, one.delegate.late.value == 0 else {
        return "connection \(index), \(life): \(one.delegate.ends.value) ends, \(one.delegate.late.value) late calls"
      }
    }
    return nil
  }

  private static func begin(
    _ server: LyingServer, _ life: Life, _ made: Box<[Begun]>,
    _ random: inout SplitMix64
  ) {
    let queue = OperationQueue()
    for _ in 0..<10 {
      let (request, ends) = ConnectionTeardownTests.request(server, &random)
      let delegate = EndCounter()
      delegate.cancelsWithin = Int.random(in: 0..<5, using: &random) == 0
      delegate.follows = Bool.random(using: &random)
      guard let connection = NSURLConnection(request: request, delegate: delegate, startImmediately: false)
      else { return }
      if life == .hasQueue { connection.setDelegateQueue(queue) }
      if Int.random(in: 0..<10, using: &random) == 0 { delegate.cancel(connection) }
      connection.start()
      // A connection that ends by itself may be kept alive only by itself.
      let isHeld = !ends || Bool.random(using: &random)
      made.update { $0.append(Begun(delegate: delegate, connection: isHeld ? connection : nil, ends: ends)) }
      switch Int.random(in: 0..<8, using: &random) {
      case 0: delegate.cancel(connection)
      case 1:
        DispatchQueue.global().async { delegate.cancel(connection) }
      case 2 where life != .hasQueue:
        connection.unschedule(from: .current, forMode: .default)
        connection.schedule(in: .current, forMode: .default)
      case 3 where life == .runs:
        connection.setDelegateQueue(queue)
        connection.setDelegateQueue(nil)
      case 4: usleep(UInt32.random(in: 0...300, using: &random))
      default: break
      }
    }
  }

  /// Runs the loop until all connections have ended, cancelling endless ones after some passes.
  private static func runUntilEnded(
    _ made: Box<[Begun]>, patience: Int
  ) {
    var passes = 0
    while !made.value.allSatisfy(\.delegate.isOver) {
      RunLoop.current.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
      passes += 1
      if passes >= patience { for one in made.value where !one.delegate.isOver { one.cancelIfEndless() } }
    }
  }
}

/// Runs ten operations.
private enum OperationTurn {
  /// Runs a turn, and returns a failure, if any.
  static func run(_ server: LyingServer, _ seeded: SplitMix64) async -> String? {
    var random = seeded
    var operations: [(AFHTTPRequestOperation, finished: Counter, ends: Bool)] = []
    let queue = OperationQueue()
    for _ in 0..<10 {
      let (request, ends) = ConnectionTeardownTests.request(server, &random)
      let operation = AFHTTPRequestOperation(request: request)
      let finished = Counter()
      operation.whenFinished { finished.add() }
      if Int.random(in: 0..<4, using: &random) == 0 { operation.outputStream = .toMemory() }
      if Int.random(in: 0..<4, using: &random) == 0 { operation.runLoopModes = [.default] }
      if Int.random(in: 0..<10, using: &random) == 0 { operation.cancel() }
      if Bool.random(using: &random) { queue.addOperation(operation) } else { operation.start() }
      operations.append((operation, finished, ends))
    }
    for _ in 0..<Int.random(in: 0...30, using: &random) {
      let operation = operations[Int.random(in: 0..<operations.count, using: &random)].0
      switch Int.random(in: 0..<6, using: &random) {
      case 0: operation.cancel()
      case 1: operation.pause()
      case 2: operation.resume()
      case 3: await Task.yield()
      default: usleep(UInt32.random(in: 0...300, using: &random))
      }
    }
    let all = operations
    for (operation, _, ends) in all {
      if !ends { operation.cancel() }
      operation.resume()
      // An operation paused before its queue started it is started later, without effect.
      operation.start()
    }
    await eventually { all.allSatisfy { $0.finished.value > 0 && $0.0.isFinished } && queue.operationCount == 0 }
    let counts = all.map(\.finished.value)
    return counts.allSatisfy { $0 == 1 } ? nil : "\(counts)"
  }
}

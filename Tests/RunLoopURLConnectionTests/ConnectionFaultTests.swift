// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import Foundation
  import RunLoopCore
  import RunLoopThreads
  import TestSupport
  import Testing

  @testable import RunLoopHTTP
  @testable import RunLoopURLConnection

  /// Connections and operations when system resources are exhausted.
  ///
  /// They share a loader's thread, so each test has its own process.
  @Suite("Connections and operations without system resources", .timeLimit(.minutes(20)))
  struct ConnectionFaultTests {
    /// Returns the outcomes of a connection's request and of an operation's, each of which is reported once.
    private static func ends(_ server: LyingServer) async -> [String] {
      let connection = await elsewhere { load(server.request()) }
      let ends = connection.log.count(of: "finish") + connection.log.entries.count { $0.hasPrefix("fail") }
      #expect(ends == 1, "\(connection.log.text)")
      let operation = AFHTTPRequestOperation(request: server.request())
      let completions = Counter()
      operation.whenFinished { completions.add() }
      operation.start()
      await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
      #expect(completions.value == 1 && operation.isFinished && !operation.isExecuting)
      return [connection.failure.value.map(text) ?? connection.text, operation.error.map(text) ?? operation.text]
    }

    /// Returns the code and the underlying error's detail.
    private static func text(_ error: any Error) -> String {
      guard let error = error as? URLError else { return "\(error)" }
      let underlying = error.userInfo[NSUnderlyingErrorKey] as? HTTP.Error
      return "\(error.code.rawValue) \(underlying?.detail ?? "")"
    }

    /// Applies a fault plan to the loader's thread from its next turn on, makes two requests, and removes the plan.
    private static func ends(
      _ server: LyingServer, _ plan: FaultPlan, requests: Int = 1
    ) async -> (ends: [[String]], isUsedUp: Bool) {
      let plan = BorrowedPlan(plan)
      let core = NSURLConnection.client.core
      core.post { plan.plan.beginRuling() }
      var ends: [[String]] = []
      for _ in 0..<requests { ends.append(await ConnectionFaultTests.ends(server)) }
      await withCheckedContinuation { continuation in
        core.post {
          FaultPlan.endRuling()
          continuation.resume()
        }
      }
      return (ends, plan.plan.isUsedUp)
    }

    @Test("without a descriptor or a watch of its socket, each request fails, and the next succeeds")
    func sockets() async {
      await #expect(processExitsWith: .success) {
        let server = try LyingServer { $0.answer("hello", "Connection: close") }
        // The library creates its permanent resources first.
        #expect(await ConnectionFaultTests.ends(server) == ["hello", "hello"])
        // Newer versions of the library try more than once.
        let none = FaultPlan()
        for _ in 0..<8 { none.plan(.socket, .fails(EMFILE)) }
        var ends = await ConnectionFaultTests.ends(server, none).ends[0]
        let code = URLError.Code.cannotConnectToHost.rawValue
        for end in ends { #expect(end.hasPrefix("\(code) ") && end.contains("socket"), "\(end)") }
        #expect(none.counts[.socket, default: 0] >= 2 && ends.count == 2)
        let unwatched = FaultPlan()
        for _ in 0..<8 { unwatched.plan(.epollControl, .fails(ENOSPC)) }
        ends = await ConnectionFaultTests.ends(server, unwatched).ends[0]
        for end in ends { #expect(end.hasPrefix("\(code) "), "\(end)") }
        #expect(unwatched.counts[.epollControl, default: 0] >= 2 && ends.count == 2)
        #expect(await ConnectionFaultTests.ends(server) == ["hello", "hello"])
      }
    }

    @Test("a library without memory at its start fails each request, and the next ones succeed")
    func memory() async {
      await #expect(processExitsWith: .success) {
        let server = try LyingServer { $0.answer("hello") }
        let plan = FaultPlan()
        plan.plan(.memoryAllocate, .fails(ENOMEM), .fails(ENOMEM))
        let (ends, isUsedUp) = await ConnectionFaultTests.ends(server, plan, requests: 2)
        for end in ends[0] { #expect(end.hasPrefix("\(URLError.Code.cannotLoadFromNetwork.rawValue) "), "\(end)") }
        #expect(ends[1] == ["hello", "hello"])
        #expect(isUsedUp)
      }
    }

    @Test("a thread that cannot be started is an error, and the next request starts it")
    func threads() async {
      await #expect(processExitsWith: .success) {
        let server = try LyingServer { $0.answer("hello") }
        let (connection, isUsedUp) = await elsewhere {
          let plan = FaultPlan()
          plan.plan(.threadCreate, .fails(EAGAIN))
          return (plan.rule { load(server.request()) }, plan.isUsedUp)
        }
        #expect(isUsedUp)
        #expect(connection.log.text == "fail \(URLError.Code.cannotConnectToHost.rawValue)")
        let (operation, isUsedUpToo) = await elsewhere {
          let plan = FaultPlan()
          plan.plan(.threadCreate, .fails(EAGAIN))
          return (plan.rule { AFHTTPRequestOperation(request: server.request()) }, plan.isUsedUp)
        }
        let ends = Counter()
        operation.whenFinished { ends.add() }
        operation.start()
        #expect(isUsedUpToo && ends.value == 1)
        #expect((operation.error as? URLError)?.code == .cannotLoadFromNetwork)
        #expect(await ConnectionFaultTests.ends(server) == ["hello", "hello"])
      }
    }

    @Test("a stream that accepts no more bytes ends its operation with its error, and closes the connection")
    func fullDisk() async throws {
      // More is announced than is sent, because a connection with a complete response would be kept.
      let server = try LyingServer { exchange in
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        exchange.send(pattern(300_000))
      }
      let operation = AFHTTPRequestOperation(request: server.request())
      operation.outputStream = OutputStream(toFileAtPath: "/dev/full", append: true)
      let ends = Counter()
      operation.whenFinished { ends.add() }
      operation.start()
      await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
      let error = operation.error as NSError?
      #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(ENOSPC), "\(String(describing: error))")
      await eventually { server.ended.value == 1 && ends.value == 1 }
    }

    @Test("a body that cannot be read is the error of its request, reported once")
    func noBody() async throws {
      let server = try LyingServer { $0.answer("hello") }
      let connection = await elsewhere {
        var request = server.request("/", method: "PUT")
        request.httpBodyStream = InputStream(fileAtPath: "/nonexistent/file")
        return load(request)
      }
      #expect(connection.log.text == "fail \(URLError.Code.requestBodyStreamExhausted.rawValue)")
      #expect(server.requests.value == [])
    }
  }

  extension AFHTTPRequestOperation {
    fileprivate var text: String { responseString ?? "nothing" }
  }

  /// Transfers a plan to the one thread that uses it.
  private struct BorrowedPlan: @unchecked Sendable {
    // Sendable: the creator reads it only after that thread no longer uses it.
    let plan: FaultPlan

    init(_ plan: FaultPlan) { self.plan = plan }
  }
#endif

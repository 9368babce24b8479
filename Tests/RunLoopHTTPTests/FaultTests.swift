// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSockets
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// The client's behavior when the system runs out of resources.
@Suite struct FaultTests {
  #if DEBUG
    /// Makes a request while a fault plan applies to the client's loop.
    ///
    /// Returns its outcome, and that of a second request without the plan.
    private func ends(
      _ plan: FaultPlan, output: HTTP.Output = .memory, respond: @escaping @Sendable (LyingServer.Exchange) -> Void
    ) async throws -> [String] {
      let server = try LyingServer(respond)
      return await ends(plan, server.url(), .init(), output: output)
    }

    private func ends(
      _ plan: FaultPlan, _ url: String, _ configuration: HTTP.Configuration, output: HTTP.Output = .memory
    ) async -> [String] {
      let thread = BorrowedPlan(plan)
      return await elsewhere {
        let loop = RunLoop.current
        let client = HTTP.Client(configuration, on: loop)
        func end() -> String {
          let result = Box("")
          let operation = client.operation(HTTP.Request(url), output: output)
          operation.onCompletion { outcome in
            result.value =
              switch outcome {
              case .success(let (body, response)): "\(response.status.code) \(body.text ?? "")"
              case .failure(let error): "\(error.code): \(error.detail)"
              }
            loop.stop()
          }
          operation.start()
          loop.runUntilStopped()
          return result.value
        }
        let ends = [thread.plan.rule(end), end()]
        client.stop(.immediately)
        loop.run(mode: .default, for: .zero)
        return ends
      }
    }

    @Test("without a free descriptor a request cannot connect, and the next one can")
    func noDescriptor() async throws {
      let plan = FaultPlan()
      plan.plan(.socket, .fails(EMFILE))
      let ends = try await ends(plan) { $0.answer("ok") }
      #expect(ends[0].hasPrefix("cannotConnect: "))
      #expect(ends[0].contains("socket"))
      #expect(ends[1] == "200 ok")
      #expect(plan.isUsedUp)
    }

    @Test("without the thread that detects floods, plain HTTP/2 cannot connect, and the next request can")
    func noGuard() async throws {
      let server = try FrameServer("hello")
      let plan = FaultPlan()
      plan.plan(.threadCreate, .fails(EAGAIN))
      var configuration = HTTP.Configuration()
      configuration.version = .http2
      let ends = await ends(plan, server.url, configuration)
      #expect(ends[0].hasPrefix("cannotConnect: the thread that looks for floods cannot start"))
      #expect(ends[1] == "200 hello")
      #expect(plan.isUsedUp)
    }

    @Test("a socket that cannot be watched fails its request, and the next one succeeds")
    func noWatch() async throws {
      let plan = FaultPlan()
      plan.plan(.epollControl, nil, .fails(ENOSPC), .fails(ENOSPC))
      let ends = try await ends(plan) { $0.answer("ok") }
      #expect(ends[0].hasPrefix("cannotConnect: "))
      #expect(ends[1] == "200 ok")
    }

    @Test("libcurl running out of memory is a typed error, for all requests or for one")
    func noMemory() async throws {
      let none = FaultPlan()
      none.plan(.memoryAllocate, .fails(ENOMEM))
      let first = try await ends(none) { $0.answer("ok") }
      #expect(first[0].hasPrefix("noLibrary: "))
      #expect(first[1] == "200 ok")
      let one = FaultPlan()
      one.plan(.memoryAllocate, nil, .fails(ENOMEM))
      let second = try await ends(one) { $0.answer("ok") }
      #expect(second[0].hasPrefix("cannotConnect: "))
      #expect(second[1] == "200 ok")
    }

    @Test("a full disk ends a download and keeps the bytes written, and the next request resumes it")
    func fullDisk() async throws {
      let path = "/tmp/run-loop-http-\(RunLoopTestPath.next())"
      defer { RunLoopTestPath.remove(path) }
      let plan = FaultPlan()
      // The first write is a short one.
      plan.plan(.fileWrite, nil, .fails(ENOSPC))
      let ends = try await ends(plan, output: .file(path)) { exchange in
        if let range = exchange.field("Range"), let first = Int(range.dropFirst(6).dropLast()) {
          exchange.answer(
            pattern(300_000 - first, from: first), status: "206 Part",
            ["Content-Range: bytes \(first)-299999/300000", "ETag: \"1\""])
        } else {
          exchange.answer(pattern(300_000), ["ETag: \"1\""])
        }
      }
      #expect(ends[0].hasPrefix("fileFailed: "))
      #expect(ends[0].contains(String(cString: strerror(ENOSPC))))
      #expect(ends[1].hasPrefix("200") || ends[1].hasPrefix("206"))
      #expect(RunLoopTestPath.read(path) == pattern(300_000))
    }
  #endif

  @Test("a file in a missing directory ends the request before anything is sent")
  func missingFolder() async throws {
    let asked = Counter()
    let server = try LyingServer { exchange in
      asked.add()
      exchange.answer("ok")
    }
    let client = HTTP.Client()
    let path = "/tmp/run-loop-http-\(RunLoopTestPath.next())/none/file"
    let operation = client.operation(HTTP.Request(server.url("/small")), output: .file(path))
    let end = await withCheckedContinuation { continuation in
      operation.onCompletion(on: .immediately) { continuation.resume(returning: "\($0)") }
      operation.start()
    }
    #expect(end.contains("fileFailed") && end.contains("\(path).part cannot be opened"), "\(end)")
    #expect(asked.value == 0)
  }

  @Test("a client whose loop's thread has ended reports that")
  func endedLoop() async throws {
    let thread = try ResidentThread(name: "short")
    let loop = thread.runLoop
    thread.stop()
    _ = await thread.finished()
    let client = HTTP.Client(.init(), on: loop)
    #expect(await end(client, HTTP.Request("http://127.0.0.1:1/")) == "stopped")
    client.stop()
    _ = await client.finished()
  }

  @Test("with a Unix socket as the server, requests for every host are sent to it", arguments: [false, true])
  func unixSockets(_ isAbstract: Bool) async throws {
    let name = "/tmp/run-loop-http-\(RunLoopTestPath.next()).socket"
    defer { unlink(name) }
    let address = try isAbstract ? SocketAddress(abstractName: name) : SocketAddress(path: name)
    let server = try LyingServer(at: address) { $0.answer($0.field("Host") ?? "") }
    try await withClient {
      $0.unixSocket = (isAbstract ? "@" : "") + name
    } _: { client in
      #expect(await end(client, HTTP.Request("http://docker.invalid/version")) == "200 docker.invalid")
      #expect(await end(client, HTTP.Request("http://other.invalid:81/")) == "200 other.invalid:81")
    }
    #expect(server.requests.value == ["GET /version", "GET /"])
    server.stop()
    try await withClient {
      $0.unixSocket = "/nowhere/none"
    } _: { client in
      #expect(await end(client, HTTP.Request("http://docker.invalid/")) == "cannotConnect")
    }
  }
}

#if DEBUG
  /// Transfers a plan to the one thread that uses it.
  private struct BorrowedPlan: @unchecked Sendable {
    // Sendable: the creating thread waits until the other has used it.
    let plan: FaultPlan

    init(_ plan: FaultPlan) { self.plan = plan }
  }
#endif

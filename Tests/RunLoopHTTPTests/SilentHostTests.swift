// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import RunLoopTesting
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Requests to silent TLS servers, where all wait for the first one's connection because it could carry them.
@Suite(.timeLimit(.minutes(20))) struct SilentHostTests {
  @Test("requests that wait for the connection to a silent host time out with it")
  func idle() throws {
    // The system accepts connections, and the test never responds.
    let listener = try ListeningSocket(at: .loopback(port: 0))
    defer { listener.invalidate() }
    let url = "https://127.0.0.1:\(listener.address.port ?? 0)/"
    var configuration = HTTP.Configuration()
    configuration.idleTimeout = .seconds(60)
    configuration.connectTimeout = .seconds(3600)
    let ends = try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let client = HTTP.Client(configuration, on: loop)
      let ends = Box<[String]>([])
      for _ in 0..<8 {
        let operation = client.operation(HTTP.Request(url))
        operation.onCompletion { result in
          guard case .failure(let error) = result else { return }
          ends.update { $0.append(error.code.name) }
          if ends.value.count == 8 { loop.stop() }
        }
        operation.start()
      }
      loop.runUntilStopped()
      ends.update { $0.append("\(time.elapsed.components.seconds)") }
      client.stop()
      loop.run(mode: .default, for: .zero)
      return ends.value
    }
    #expect(ends == Array(repeating: "timedOut", count: 8) + ["60"])
  }

  @Test("a connection that is not made in time ends its request, and waiting requests make their own")
  func connecting() throws {
    // The system accepts connections, and the test never responds.
    let listener = try ListeningSocket(at: .loopback(port: 0))
    defer { listener.invalidate() }
    let url = "https://127.0.0.1:\(listener.address.port ?? 0)/"
    var configuration = HTTP.Configuration()
    configuration.idleTimeout = nil
    configuration.connectTimeout = .seconds(30)
    let ends = try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let client = HTTP.Client(configuration, on: loop)
      let ends = Box<[String]>([])
      for _ in 0..<3 {
        let operation = client.operation(HTTP.Request(url))
        operation.onCompletion { result in
          guard case .failure(let error) = result else { return }
          ends.update { $0.append("\(error.code.name) \(time.elapsed.components.seconds)") }
          if ends.value.count == 3 { loop.stop() }
        }
        operation.start()
      }
      loop.runUntilStopped()
      client.stop()
      loop.run(mode: .default, for: .zero)
      return ends.value
    }
    #expect(ends == ["timedOut 30", "timedOut 60", "timedOut 60"])
  }

  @Test(
    "when the first connection to a host fails, the requests that wait for it connect without waiting for each other")
  func failing() async throws {
    let thread = try ResidentThread(name: "listener")
    let listener = try ListeningSocket(at: .loopback(port: 0))
    let sockets = Box<[Socket]>([])
    let loop = thread.runLoop
    listener.handler = { _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { _, _ in }
      try? loop.add(socket, forMode: .default)
      sockets.update { $0.append(socket) }
    }
    try loop.add(listener, forMode: .default)
    let url = "https://127.0.0.1:\(listener.address.port ?? 0)/"
    try await withClient {
      $0.connectionsPerHost = 8
      $0.connectTimeout = .seconds(3600)
    } _: { client in
      let operations = (0..<8).map { _ in client.operation(HTTP.Request(url), on: .main) }
      for operation in operations { operation.start() }
      await eventually { sockets.value.count == 1 }
      sockets.value[0].invalidate()
      await eventually { sockets.value.count == 8 }
      client.stop(.immediately)
    }
    listener.invalidate()
    for socket in sockets.value { socket.invalidate() }
    thread.stop()
  }
}

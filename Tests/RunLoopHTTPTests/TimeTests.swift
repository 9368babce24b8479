// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTP
import RunLoopTesting
import TestSupport
import Testing

/// Timeouts, on a time that passes when nothing happens.
@Suite struct TimeTests {
  /// Asks a silent server on virtual time, and returns the end and the seconds that have passed.
  private func wait(
    _ begin: (HTTP.Operation) -> Void = { $0.start() }, _ change: (inout HTTP.Configuration) -> Void
  ) throws -> String {
    let server = try LyingServer { _ in }
    defer { server.stop() }
    var configuration = HTTP.Configuration()
    configuration.idleTimeout = nil
    change(&configuration)
    return try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let client = HTTP.Client(configuration, on: loop)
      let log = Box("")
      let operation = client.operation(HTTP.Request(server.url()))
      operation.onCompletion { result in
        if case .failure(let error) = result { log.value = error.code.name }
        loop.stop()
      }
      begin(operation)
      loop.runUntilStopped()
      let elapsed = time.elapsed
      client.stop()
      loop.run(mode: .default, for: .zero)
      return "\(log.value) \(elapsed.components.seconds)"
    }
  }

  @Test("a server that is silent for the idle timeout has timed out")
  func idle() throws { #expect(try wait { $0.idleTimeout = .seconds(60) } == "timedOut 60") }

  @Test("a request that takes longer than it may in all has timed out")
  func total() throws { #expect(try wait { $0.totalTimeout = .seconds(3600) } == "timedOut 3600") }

  @Test("the time for the whole request goes on while it is paused, even before its start")
  func totalOfPaused() throws {
    #expect(
      try wait({
        $0.start()
        $0.pause()
      }) { $0.totalTimeout = .seconds(3600) } == "timedOut 3600")
    #expect(try wait({ $0.pause() }) { $0.totalTimeout = .seconds(3600) } == "timedOut 3600")
  }

  @Test("the idle timeout does not count while a request is paused")
  func idleOfPaused() throws {
    #expect(
      try wait({
        $0.start()
        $0.pause()
      }) {
        $0.idleTimeout = .seconds(60)
        $0.totalTimeout = .seconds(3600)
      } == "timedOut 3600")
  }

  @Test("the shorter of both counts")
  func both() throws {
    #expect(
      try wait {
        $0.idleTimeout = .seconds(60)
        $0.totalTimeout = .seconds(7)
      } == "timedOut 7")
  }

  @Test("a time that no clock can count to never comes; one that has passed ends the request at once")
  func extremes() throws {
    let long = [Duration(attoseconds: .max), .seconds(Int64.max), .nanoseconds(Int64.max)]
    let past = [Duration(attoseconds: .min), .seconds(Int64.min), .nanoseconds(Int64.min), .seconds(-1)]
    for time in long {
      #expect(
        try wait {
          $0.idleTimeout = .seconds(60)
          $0.totalTimeout = time
          $0.connectTimeout = time
          $0.retry.delay = time
          $0.retry.maximumDelay = time
          $0.retry.maximumRetryAfter = time
        } == "timedOut 60")
      #expect(
        try wait {
          $0.idleTimeout = time
          $0.totalTimeout = .seconds(60)
        } == "timedOut 60")
    }
    for time in past {
      #expect(try wait { $0.idleTimeout = time } == "timedOut 0")
      #expect(try wait { $0.totalTimeout = time } == "timedOut 0")
    }
  }

  /// Two requests to a silent server that may have one connection: how each has ended, and after how many seconds.
  private func takeTurns(_ afterASecond: @escaping @Sendable (HTTP.Operation) -> Void = { _ in }) throws -> [String] {
    let server = try LyingServer { _ in }
    defer { server.stop() }
    var configuration = HTTP.Configuration()
    configuration.connectionsPerHost = 1
    configuration.idleTimeout = .seconds(60)
    // While a request waits for its turn no other time passes for it.
    configuration.totalTimeout = .seconds(3600)
    return try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let client = HTTP.Client(configuration, on: loop)
      let ends = Box(["", ""])
      let operations = (0..<2).map { _ in client.operation(HTTP.Request(server.url())) }
      for (number, operation) in operations.enumerated() {
        operation.onCompletion { result in
          guard case .failure(let error) = result else { return }
          ends.update { $0[number] = "\(error.code.name) \(time.elapsed.components.seconds)" }
          if !ends.value.contains("") { loop.stop() }
        }
        operation.start()
      }
      let first = operations[0]
      let timer = Timer(timeInterval: 1, repeats: false) { _ in afterASecond(first) }
      loop.add(timer, forMode: .default)
      loop.runUntilStopped()
      client.stop()
      loop.run(mode: .default, for: .zero)
      return ends.value
    }
  }

  // libcurl 8.10 to 8.18 asks for no time for those that may begin when a transfer without a time of its own is taken
  // away.
  @Test("a request that waits for a connection begins when the one that has it times out, is cancelled or paused")
  func turns() throws {
    #expect(try takeTurns() == ["timedOut 60", "timedOut 120"])
    #expect(try takeTurns { $0.cancel() } == ["cancelled 1", "timedOut 61"])
    #expect(try takeTurns { $0.pause() } == ["timedOut 3600", "timedOut 61"])
  }
}

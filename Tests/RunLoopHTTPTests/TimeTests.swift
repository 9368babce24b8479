// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopHTTP
import RunLoopTesting
import TestSupport
import Testing

/// Timeouts on virtual time, which passes when nothing happens.
@Suite struct TimeTests {
  /// Makes a request to a silent server on virtual time; returns the outcome, and the seconds that passed.
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

  @Test("a request that exceeds its total timeout has timed out")
  func total() throws { #expect(try wait { $0.totalTimeout = .seconds(3600) } == "timedOut 3600") }

  @Test("the total timeout continues while a request is paused, even before its start")
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

  @Test("the shorter of the idle and total timeouts applies")
  func both() throws {
    #expect(
      try wait {
        $0.idleTimeout = .seconds(60)
        $0.totalTimeout = .seconds(7)
      } == "timedOut 7")
  }

  @Test("a timeout beyond the clock's range never ends, and a past one ends the request immediately")
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

  /// Makes two requests to a silent server with a limit of one connection; returns each outcome and its seconds.
  private func takeTurns(_ afterASecond: @escaping @Sendable (HTTP.Operation) -> Void = { _ in }) throws -> [String] {
    let server = try LyingServer { _ in }
    defer { server.stop() }
    var configuration = HTTP.Configuration()
    configuration.connectionsPerHost = 1
    configuration.idleTimeout = .seconds(60)
    // Only the total timeout runs while a request waits for its turn.
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

  // When a transfer without a timeout is removed, libcurl 8.10 to 8.18 sets no timer for those that may now begin.
  @Test("a request that waits for a connection begins when the current one times out, is cancelled or paused")
  func turns() throws {
    #expect(try takeTurns() == ["timedOut 60", "timedOut 120"])
    #expect(try takeTurns { $0.cancel() } == ["cancelled 1", "timedOut 61"])
    #expect(try takeTurns { $0.pause() } == ["timedOut 3600", "timedOut 61"])
  }
}

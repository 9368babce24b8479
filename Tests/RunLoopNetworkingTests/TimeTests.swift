// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopNetworking
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
          $0.retry.longestDelay = time
          $0.retry.longestRetryAfter = time
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
}

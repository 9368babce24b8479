// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopSockets

/// Each test has its own process, because an overflow of a date plus a duration would trap.
@Suite("Durations beyond the range of the clock", .timeLimit(.minutes(20)))
struct LongDurationTests {
  private static let long = Duration(attoseconds: .max)

  @Test("a socket with unrepresentable timeouts connects, receives and closes")
  func socket() async {
    await #expect(processExitsWith: .success) {
      let log = onSocketLoop { loop, log in
        let listener = try ListeningSocket(at: .loopback(port: 0)) { listener, event in
          guard case .accepted(let socket) = event else { return }
          _ = try? socket.write("x")
          listener.invalidate()
          _ = Unmanaged.passRetained(socket)
        }
        try loop.add(listener, forMode: .default)
        var options = Socket.Options()
        options.connectTimeout = Self.long
        options.idleTimeout = Self.long
        try loop.connect(listener.address, options: options) { socket, event in
          log.write(event.word)
          if case .received = event { loop.stop() }
        }
        log.write("\(loop.runUntilStopped())")
      }
      #expect(log == "connected received(x) stopped")
    }
  }

  @Test("a look-up with an unrepresentable timeout completes, on a loop and in a task")
  func lookup() async {
    await #expect(processExitsWith: .success) {
      let log = onSocketLoop { loop, log in
        HostResolver.resolve("127.0.0.1", port: 9, timeout: Self.long, on: loop) { answer in
          if case .success(let addresses) = answer { log.write("\(addresses)") }
          loop.stop()
        }
        log.write("\(loop.runUntilStopped())")
      }
      #expect(log == "[127.0.0.1:9] stopped")
      let found = try await HostResolver.resolve("::1", port: 9, timeout: Self.long)
      #expect(found == [.loopback(port: 9, family: .ipv6)])
    }
  }

  #if DEBUG
    @Test("a listener with an unrepresentable retry delay retries when it is resumed")
    func retry() async {
      await #expect(processExitsWith: .success) {
        let log = onSocketLoop { loop, log in
          var options = ListeningSocket.Options()
          options.retryInterval = Self.long
          let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { listener, event in
            if case .accepted = event { loop.stop() }
            if case .exhausted = event {
              log.write("exhausted")
              loop.perform { listener.resumeAccepting() }
            }
          }
          try loop.add(listener, forMode: .default)
          let socket = try Socket(connectingTo: listener.address)
          let plan = FaultPlan()
          plan.plan(.accept, .fails(ENFILE))
          log.write("\(plan.rule { loop.runUntilStopped() })")
          socket.invalidate()
        }
        #expect(log == "exhausted stopped")
      }
    }
  #endif
}
